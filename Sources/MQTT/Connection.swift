// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Operations

/// One connection: its handle, its socket, and everything that ends with it.
///
/// One thread at a time uses it: first the connecting thread, then the loop's thread.
@safe final class Connection: @unchecked Sendable {
  // Sendable because ownership moves through ConnectThread's locked slot; two threads never use it at
  // the same time.

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
