// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import COpenSSL
import Glibc
import LastOut
import Operations
import Values

/// One connection: its handle, its socket, and everything that ends with it.
///
/// One thread at a time uses it: first the connecting thread, then the loop's thread.
@safe final class Connection: @unchecked Sendable {
  // Sendable because ownership moves through ConnectThread's locked slot; two threads never use it
  // at the same time.

  let handle: MosquittoHandle
  /// That of the attempt: with the broker and the protocol that are tried.
  let configuration: MQTTConfiguration
  let target: AddressRound.Target
  /// Set once the loop owns the connection; the owner outlives every call into the library.
  unowned var client: MQTTClient?
  /// Why the connection must end; it ends once no call into the library is on the stack.
  private(set) var problem: ConnectionProblem?
  /// Whether the broker has accepted the connection.
  var isAccepted = false
  /// The CONNACK, until it is handled.
  var connack: Connack?
  /// The watched descriptor; compared with the library's after each call.
  private(set) var descriptor: Int32 = -1
  /// `nil` before the loop owns the socket, and once the library has closed it.
  private var watch: IOWatch?
  var unfinished = UnfinishedPacket()
  /// Whether the other side, which has not answered, was asked for an answer in HTTP.
  var hasEndedLine = false
  /// Whether something must be sent at the end of the batch.
  var hasUnsent = false
  /// The number of packets that the library has queued since the last write.
  var queuedPackets = 0
  /// The filters of each unanswered SUBSCRIBE, by packet identifier.
  var subscribing: [Int32: [String]] = [:]
  /// The number of callbacks so far; shows whether a call into the library did anything.
  private(set) var callbackCount = 0
  /// Why the library closed the connection: a DISCONNECT's code or an error number.
  private var disconnectCode: Int32?
  /// The last error in the library's log, such as OpenSSL's message about a certificate.
  private var lastComplaint: String?
  /// OpenSSL's result for the broker's certificate at the library's last error.
  private var verdict: Int?

  /// The broker's reply to CONNECT.
  struct Connack: Hashable, Sendable {
    var code: Int32
    var sessionPresent: Bool
    /// MQTT 5: how many unanswered publishes the broker accepts.
    var receiveMaximum: Int?
    /// MQTT 5: the highest quality of service that the broker supports; `nil` for all.
    var maximumQoS: Int?
  }

  init(
    configuration: MQTTConfiguration,
    target: AddressRound.Target
  ) throws(ConnectionProblem) {
    self.configuration = configuration
    self.target = target
    let tls = try TLSContext.make(configuration)
    do throws(MosquittoError) {
      handle = try MosquittoHandle(configuration, tls)
    } catch {
      throw ConnectionProblem(.refused, "\(error)")
    }
    handle.deliver(to: self)
  }

  /// Watches the socket; from now on the loop owns the connection.
  func open(
    _ socket: Int32,
    on loop: EventLoop,
    for client: MQTTClient,
    handler: @escaping (IOInterest) -> Void
  ) throws(OperationsError) {
    watch = try loop.watch(socket, for: [.read, .write], named: "MQTT", handler: handler)
    descriptor = socket
    self.client = client
  }

  /// Cancels the watch; the handle, which closes its socket, is destroyed with the last reference.
  func drop() {
    stopWatching()
    client = nil
  }

  func stopWatching() {
    watch?.cancel()
    watch = nil
  }

  func updateInterest() {
    watch?.interest = handle.wantsToWrite ? [.read, .write] : .read
  }

  /// Records why the connection must end; the first problem counts.
  ///
  /// A peer that was asked for an answer in HTTP has not answered CONNECT in time, whatever it does
  /// then.
  func fail(_ problem: ConnectionProblem) {
    let isSilent = hasEndedLine && !isAccepted && problem.endsWithoutAnswer
    self.problem =
      self.problem ?? (isSilent ? .noAnswer(within: configuration.connectDeadline) : problem)
  }

  /// Records a failed call as the reason to end the connection, from the most specific source.
  func fail(_ failure: MosquittoError?) {
    if let code = disconnectCode, code >= 0x80 {
      fail(ConnectionProblem(disconnectCode: code))
      return
    }
    let reason = reason(failure?.reason ?? ConnectionProblem.closedByPeer)
    guard isAccepted else {
      if configuration.version == .v5, failure?.isUnreadable ?? false {
        return fail(ConnectionProblem(.unreachable, ConnectionProblem.answersOlder, .version))
      }
      let isClosed = reason == ConnectionProblem.closedByPeer
      fail(ConnectionProblem(.unreachable, reason, isClosed ? .closed : trouble(of: reason)))
      return
    }
    let isSilent = failure?.code == Int32(MOSQ_ERR_KEEPALIVE.rawValue)
    fail(ConnectionProblem(isSilent ? .silent : .dropped, reason))
  }

  /// What is wrong where TLS complained; `nil` where it did not.
  func trouble(of reason: String) -> ConnectionTrouble? {
    guard case .tls(let host, _) = configuration.endpoint, lastComplaint != nil else { return nil }
    return reason.hasSuffix(TLSFailure.otherName(host)) ? .certificateName : .certificate
  }

  /// The reason of a failure, with the meaning of the library's last error or the error itself.
  func reason(_ reason: String) -> String {
    guard case .tls(let host, _) = configuration.endpoint, let complaint = lastComplaint else {
      return reason
    }
    let words = TLSFailure.words(
      complaint,
      verdict: verdict,
      host: host,
      authority: configuration.caFile
    )
    return words.map { "TLS: \($0)" } ?? "\(reason) (\(complaint))"
  }

  /// The connection of a callback's context; counts the callback.
  static func from(_ context: UnsafeMutableRawPointer?) -> Connection? {
    guard let context = unsafe context else { return nil }
    let connection = unsafe Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue()
    connection.callbackCount &+= 1
    return connection
  }

  /// Records the reason code with which the library closed the connection.
  func disconnected(code: Int32) {
    disconnectCode = code
  }

  /// Records an error in the library's log, and OpenSSL's result for the certificate.
  func complained(_ complaint: String, verdict: Int?) {
    lastComplaint = complaint
    self.verdict = verdict
  }
}

/// The callbacks of the library.
extension Connection {
  static func setCallbacks(of pointer: OpaquePointer) {
    unsafe mosquitto_connect_v5_callback_set(pointer) { _, context, code, flags, properties in
      let connection = unsafe Connection.from(context)
      var maximum: UInt16 = 0
      let found = unsafe mosquitto_property_read_int16(
        properties,
        MQTT_PROP_RECEIVE_MAXIMUM.code,
        &maximum,
        false
      )
      var highest: UInt8 = 0
      let limit = unsafe mosquitto_property_read_byte(
        properties,
        MQTT_PROP_MAXIMUM_QOS.code,
        &highest,
        false
      )
      connection?.connack = Connack(
        code: code,
        sessionPresent: flags & 1 != 0,
        receiveMaximum: unsafe found == nil ? nil : Int(maximum),
        maximumQoS: unsafe limit == nil ? nil : Int(highest)
      )
    }
    unsafe mosquitto_disconnect_v5_callback_set(pointer) { _, context, code, _ in
      unsafe Connection.from(context)?.disconnected(code: code)
    }
    unsafe mosquitto_publish_v5_callback_set(pointer) { _, context, identifier, code, _ in
      unsafe Connection.from(context)?.client?.wasAnswered(identifier, code: code)
    }
    unsafe mosquitto_subscribe_v5_callback_set(pointer) { _, context, identifier, count, codes, _ in
      let granted = unsafe UnsafeBufferPointer(start: codes, count: Int(count))
      unsafe Connection.from(context)?.wasSubscribed(identifier, granted: Array(granted))
    }
    unsafe mosquitto_message_v5_callback_set(pointer) { _, context, message, properties in
      guard let message = unsafe message else { return }
      unsafe Connection.from(context)?.received(message, properties: properties)
    }
    unsafe mosquitto_log_callback_set(pointer) { mosquitto, context, level, text in
      guard level & MOSQ_LOG_ERR != 0, let text = unsafe text else { return }
      unsafe Connection.from(context)?.complained(
        String(cString: text),
        verdict: TLSFailure.verdict(of: mosquitto)
      )
    }
  }

  /// Removes the callback for the library's log.
  ///
  /// With a callback, the library formats a line for each packet, which costs more than reading the
  /// packet. The messages about connecting come earlier.
  static func endLog(of pointer: OpaquePointer) {
    unsafe mosquitto_log_callback_set(pointer, nil)
  }

  private func received(
    _ message: UnsafePointer<mosquitto_message>,
    properties: OpaquePointer?
  ) {
    guard let name = unsafe message.pointee.topic else { return }
    guard unsafe strpbrk(name, "+#") == nil else {
      // The library accepts such a topic; no broker that follows the protocol sends it.
      fail(ConnectionProblem(.silent, "the broker sent a message to a wildcard topic"))
      return
    }
    if unsafe message.pointee.qos > 0 { queuedPackets += 1 }  // Its acknowledgement.
    unsafe client?.received(message, topic: name, properties: properties)
  }

  /// Handles the reply to a SUBSCRIBE, with one code per filter.
  private func wasSubscribed(_ identifier: Int32, granted: [Int32]) {
    guard let filters = subscribing.removeValue(forKey: identifier) else { return }
    for (filter, code) in zip(filters, granted) {
      client?.subscriptionAnswered(filter, code: code)
    }
  }
}

/// Why TLS failed, in words that name the fix.
///
/// libmosquitto only reports "certificate verify failed"; OpenSSL has the cause.
enum TLSFailure {
  /// The result of verifying the broker's certificate; call it inside the library's log callback.
  static func verdict(of mosquitto: OpaquePointer?) -> Int? {
    guard let mosquitto = unsafe mosquitto, let tls = unsafe mosquitto_ssl_get(mosquitto) else {
      return nil
    }
    return unsafe SSL_get_verify_result(OpaquePointer(tls))
  }

  /// The words for an error message of the library; `nil` if the message itself is clear.
  static func words(
    _ complaint: String,
    verdict: Int?,
    host: String,
    authority: String?
  ) -> String? {
    if complaint.has("certificate verify failed"), let verdict {
      return words(verdict, host: host, authority: authority)
    }
    if complaint.has("host name verification failed") { return otherName(host) }
    return alerts.first { complaint.has($0.alert) }?.words
  }

  /// TLS alerts of the broker about the client certificate.
  private static let alerts: [(alert: String, words: String)] = [
    ("alert certificate required", "the broker wants a client certificate; see `cert`"),
    (
      "alert handshake failure", "the broker refused the TLS handshake; does it want a certificate?"
    ),
    ("alert unknown ca", "the broker does not trust the authority of the client certificate"),
    ("alert certificate expired", "the client certificate has expired"),
    ("alert bad certificate", "the broker refused the client certificate"),
    ("alert protocol version", "the broker speaks no TLS 1.2 or newer"),
    ("wrong version number", "the broker does not speak TLS at this port"),
  ]

  private static func words(_ verdict: Int, host: String, authority: String?) -> String {
    switch Int32(clamping: verdict) {
    // The library's own check of the name sets no code.
    case X509_V_OK, X509_V_ERR_UNSPECIFIED, X509_V_ERR_HOSTNAME_MISMATCH,
      X509_V_ERR_IP_ADDRESS_MISMATCH:
      return otherName(host)
    case X509_V_ERR_CERT_HAS_EXPIRED: return "the broker's certificate has expired"
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the broker's certificate is not valid yet; is the clock right?"
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
      X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
      X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_SIGNATURE_FAILURE:
      let known = authority.map { "in \($0)" } ?? "in the system's store"
      return "the broker's certificate was issued by an authority that is not \(known)"
    default:
      let text = unsafe X509_verify_cert_error_string(verdict).map { unsafe String(cString: $0) }
      return "the broker's certificate was refused: \(text ?? "error \(verdict)")"
    }
  }

  /// The words for a certificate that is not for `host`.
  static func otherName(_ host: String) -> String {
    "the broker's certificate is for another name than \(host)"
  }
}

/// The phase of a client, with the state of that phase.
enum ConnectionPhase {
  case idle
  /// A thread resolves the name and opens the connection.
  case starting(ConnectThread, deadline: Moment)
  /// The loop owns the socket; CONNACK has not arrived.
  case handshaking(deadline: Moment)
  /// CONNACK arrived at `since`; `keepAliveAt` is the next keep-alive check.
  case connected(since: Moment, keepAliveAt: Moment?)
  /// DISCONNECT is queued.
  case closing(deadline: Moment)
  case waiting(until: Moment)

  /// The time without a loss after which probing for poison topics ends.
  static let provingTime: Duration = .seconds(5)

  /// How long a connection must have lasted without a message whose fault its end may be.
  static let goodTime: Duration = .seconds(1)

  /// The next moment at which the client must act, with `window` in flight.
  func nextDeadline(
    window: PublishWindow,
    acknowledgementDeadline: Duration
  ) -> Moment? {
    switch self {
    case .idle: return nil
    case .starting(_, let deadline), .handshaking(let deadline), .closing(let deadline):
      return deadline
    case .waiting(let until): return until
    case .connected(let since, let keepAliveAt):
      var next = keepAliveAt
      if let due = window.due(after: acknowledgementDeadline) { next = min(next ?? due, due) }
      if window.isHeld || window.poisonTopics.awaitsStability {
        let proved = since.advanced(by: window.isHeld ? Self.goodTime : Self.provingTime)
        next = min(next ?? proved, proved)
      }
      return next
    }
  }
}
