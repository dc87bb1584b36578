// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import COpenSSL
import Glibc
import Operations

/// Owns one `struct mosquitto`, for one connection attempt; destroyed exactly once.
///
/// The documentation of each call names its C function. A call may close the socket, and the system
/// may reuse its number: read ``socket`` after each call.
@safe struct MosquittoHandle: ~Copyable {
  private let pointer: OpaquePointer

  /// `mosquitto_lib_init`, once per process; SIGPIPE is ignored, because the library writes to
  /// sockets without suppressing it.
  private static let library: Int32 = {
    signal(SIGPIPE, SIG_IGN)
    return mosquitto_lib_init()
  }()

  /// `mosquitto_new` with all options of the configuration; does not connect.
  init(
    _ configuration: MQTTConfiguration,
    _ tls: consuming TLSContext?
  ) throws(MosquittoError) {
    let code = Self.library
    guard code == 0 else { throw MosquittoError(call: "mosquitto_lib_init", code: code) }
    let isClean = configuration.version == .v311 || configuration.sessionExpiry <= .zero
    guard let pointer = unsafe mosquitto_new(configuration.clientID, isClean, nil) else {
      throw MosquittoError(call: "mosquitto_new", code: Int32(MOSQ_ERR_ERRNO.rawValue))
    }
    do {
      try unsafe Self.setUp(pointer, configuration)
      if let tls {
        try unsafe Self.set(pointer, MOSQ_OPT_SSL_CTX_WITH_DEFAULTS, to: 0)
        let context = unsafe UnsafeMutableRawPointer(tls.pointer)
        // The library keeps a reference of its own.
        try Self.check(
          unsafe mosquitto_void_option(pointer, MOSQ_OPT_SSL_CTX, context),
          "mosquitto_void_option"
        )
      }
    } catch {
      unsafe mosquitto_destroy(pointer)
      throw error
    }
    unsafe self.pointer = pointer
  }

  private static func setUp(
    _ pointer: OpaquePointer,
    _ configuration: MQTTConfiguration
  ) throws(MosquittoError) {
    let version = configuration.version == .v5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311
    try unsafe set(pointer, MOSQ_OPT_PROTOCOL_VERSION, to: version)
    try unsafe set(pointer, MOSQ_OPT_TCP_NODELAY, to: 1)
    try unsafe set(
      pointer,
      MOSQ_OPT_SEND_MAXIMUM,
      to: Int32(min(max(configuration.window, 1), 65_535))
    )
    try check(unsafe mosquitto_threaded_set(pointer, true), "mosquitto_threaded_set")
    if let username = configuration.username {
      try check(
        unsafe mosquitto_username_pw_set(pointer, username, configuration.password),
        "mosquitto_username_pw_set"
      )
    }
    if let will = configuration.will { try unsafe set(pointer, will, configuration.version) }
  }

  private static func set(
    _ pointer: OpaquePointer,
    _ will: MQTTConfiguration.Will,
    _ version: MQTTConfiguration.ProtocolVersion
  ) throws(MosquittoError) {
    var properties = PropertyList()
    if version == .v5, will.delay > .zero {
      properties.add(MQTT_PROP_WILL_DELAY_INTERVAL.code, seconds: will.delay)
    }
    if let failure = properties.failure { throw failure }
    try check(
      unsafe mosquitto_will_set_v5(
        pointer,
        will.topic,
        Int32(clamping: will.payload.count),
        will.payload,
        Int32(will.qos),
        will.retain,
        properties.pointer
      ),
      "mosquitto_will_set_v5"
    )
    properties.passOwnership()
  }

  deinit {
    unsafe mosquitto_destroy(pointer)
  }

  /// `mosquitto_socket`: the descriptor, or `nil` while there is none.
  var socket: Int32? {
    let descriptor = unsafe mosquitto_socket(pointer)
    return descriptor >= 0 ? descriptor : nil
  }

  /// `mosquitto_want_write`.
  var wantsToWrite: Bool { unsafe mosquitto_want_write(pointer) }

  /// Whether OpenSSL holds bytes that the library has not read; `SSL_pending`.
  var hasDecrypted: Bool {
    guard let tls = unsafe mosquitto_ssl_get(pointer) else { return false }
    return unsafe SSL_pending(OpaquePointer(tls)) > 0
  }

  /// Delivers the callbacks to `connection`, which must outlive this handle.
  ///
  /// Must not be called inside a callback: the library would deadlock.
  func deliver(to connection: Connection) {
    unsafe mosquitto_user_data_set(pointer, Unmanaged.passUnretained(connection).toOpaque())
    unsafe Connection.setCallbacks(of: pointer)
  }

  /// Removes the log callback (`mosquitto_log_callback_set`); must not be called inside a callback.
  func endLog() {
    unsafe Connection.endLog(of: pointer)
  }

  /// `mosquitto_connect_async`: begins to connect to a numeric address or the path of a socket.
  ///
  /// The callbacks report the result.
  func connect(
    _ configuration: MQTTConfiguration,
    address: String
  ) throws(MosquittoError) {
    let keepalive =
      configuration.keepalive <= .zero
      ? 0 : Int32(clamping: max(5, configuration.keepalive.components.seconds))
    if configuration.version == .v5 { try keepProperties(configuration, keepalive) }
    let port: Int32 =
      switch configuration.endpoint {
      case .tcp(_, let port), .tls(_, let port): Int32(clamping: port)
      case .unix: 0
      }
    try Self.check(
      unsafe mosquitto_connect_async(pointer, address, port, keepalive),
      "mosquitto_connect_async"
    )
  }

  /// Lets the library keep CONNECT's properties.
  ///
  /// Only the call that blocks accepts them. It keeps them before it refuses an impossible port,
  /// and every later attempt sends them.
  private func keepProperties(
    _ configuration: MQTTConfiguration,
    _ keepalive: Int32
  ) throws(MosquittoError) {
    var properties = PropertyList()
    if configuration.sessionExpiry > .zero {
      properties.add(MQTT_PROP_SESSION_EXPIRY_INTERVAL.code, seconds: configuration.sessionExpiry)
    }
    let packet = configuration.maximumPacket.addingReportingOverflow(Self.packetOverhead)
    if !packet.overflow, let size = UInt32(exactly: packet.partialValue) {
      properties.add(MQTT_PROP_MAXIMUM_PACKET_SIZE.code, number: size)
    }
    if let failure = properties.failure { throw failure }
    let list = unsafe properties.pointer
    let code = unsafe mosquitto_connect_bind_v5(pointer, "", -1, keepalive, nil, list)
    guard code != Int32(MOSQ_ERR_INVAL.rawValue) else { return }
    try Self.check(code, "mosquitto_connect_bind_v5")
  }

  /// `mosquitto_loop_read`: reads at least one packet, as far as it has arrived.
  func read() throws(MosquittoError) {
    // The library mistakes a stale EAGAIN for its own and stops early.
    errno = 0
    try Self.check(unsafe mosquitto_loop_read(pointer, 1), "mosquitto_loop_read")
  }

  /// `mosquitto_loop_write`: writes all queued packets, as far as the socket accepts them.
  func write() throws(MosquittoError) {
    errno = 0
    try Self.check(unsafe mosquitto_loop_write(pointer, 1), "mosquitto_loop_write")
  }

  /// `mosquitto_loop_misc`: sends pings, and detects unanswered ones.
  func keepAlive() throws(MosquittoError) {
    try Self.check(unsafe mosquitto_loop_misc(pointer), "mosquitto_loop_misc")
  }

  /// `mosquitto_publish_v5`: queues a message and returns its identifier.
  ///
  /// After ``MosquittoError`` with `MOSQ_ERR_NO_CONN` the library still holds the message: the
  /// handle must not be used again.
  func publish(
    topic: String,
    payload: [UInt8],
    qos: Int32,
    retain: Bool,
    properties: borrowing PropertyList
  ) throws(MosquittoError) -> Int32 {
    guard let count = Int32(exactly: payload.count) else {
      throw MosquittoError(
        call: "mosquitto_publish_v5",
        code: Int32(MOSQ_ERR_PAYLOAD_SIZE.rawValue)
      )
    }
    var identifier: Int32 = 0
    let list = unsafe properties.pointer
    // Passing the text as an argument would copy it first.
    let code = unsafe topic.withCString { topic in
      unsafe mosquitto_publish_v5(
        pointer,
        &identifier,
        topic,
        count,
        payload,
        qos,
        retain,
        list
      )
    }
    try Self.check(code, "mosquitto_publish_v5")
    return identifier
  }

  /// `mosquitto_subscribe_multiple`: queues one SUBSCRIBE and returns its identifier.
  func subscribe(
    _ filters: [String],
    qos: Int32,
    options: Int32
  ) throws(MosquittoError) -> Int32 {
    var identifier: Int32 = 0
    let code = unsafe withCStrings(filters) { filters in
      unsafe mosquitto_subscribe_multiple(
        pointer,
        &identifier,
        Int32(filters.count),
        filters.baseAddress,
        qos,
        options,
        nil
      )
    }
    try Self.check(code, "mosquitto_subscribe_multiple")
    return identifier
  }

  /// `mosquitto_unsubscribe_multiple`.
  func unsubscribe(_ filters: [String]) throws(MosquittoError) {
    let code = unsafe withCStrings(filters) { filters in
      unsafe mosquitto_unsubscribe_multiple(
        pointer,
        nil,
        Int32(filters.count),
        filters.baseAddress,
        nil
      )
    }
    try Self.check(code, "mosquitto_unsubscribe_multiple")
  }

  /// `mosquitto_disconnect`: queues the DISCONNECT after which the broker sends no last will.
  func disconnect() throws(MosquittoError) {
    try Self.check(unsafe mosquitto_disconnect(pointer), "mosquitto_disconnect")
  }

  /// The maximum size of topic, properties and headers of a packet.
  private static let packetOverhead = 4096

  private static func set(
    _ pointer: OpaquePointer,
    _ option: mosq_opt_t,
    to value: Int32
  ) throws(MosquittoError) {
    try check(unsafe mosquitto_int_option(pointer, option, value), "mosquitto_int_option")
  }

  private static func check(_ code: Int32, _ call: String) throws(MosquittoError) {
    guard code != 0 else { return }
    throw MosquittoError(call: call, code: code)
  }

  private func withCStrings<Result>(
    _ texts: [String],
    _ body: (UnsafeMutableBufferPointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    var pointers = unsafe texts.map { unsafe strdup($0) }
    defer { unsafe pointers.forEach { unsafe free($0) } }
    return unsafe pointers.withUnsafeMutableBufferPointer { unsafe body($0) }
  }
}

extension mqtt5_property {
  /// The identifier in the type of the library's functions.
  var code: Int32 { Int32(rawValue) }
}

/// A failed call of libmosquitto, and the reason.
struct MosquittoError: Error, Hashable, Sendable, CustomStringConvertible {
  let call: String
  let code: Int32
  /// The reason in the words of the library or the system.
  let reason: String

  /// Creates the error of a failed call; call it immediately after, while `errno` is still set.
  init(call: String, code: Int32) {
    let number = errno
    self.call = call
    self.code = code
    reason =
      switch mosq_err_t(code) {
      case MOSQ_ERR_ERRNO: unsafe String(cString: strerror(number))
      case MOSQ_ERR_CONN_LOST: ConnectionProblem.closedByPeer
      case MOSQ_ERR_KEEPALIVE: "no answer to a ping within the keep-alive time"
      default: unsafe String(cString: mosquitto_strerror(code))
      }
  }

  var description: String { "\(call): \(reason)" }
}

extension MosquittoError {
  /// Whether what came is no packet of this version of MQTT.
  ///
  /// So ends CONNECT with MQTT 5 at a broker that answers as 3.1.1 does: versions of the library up
  /// to 2.0.11 call back before they fail, later ones do not.
  var isUnreadable: Bool {
    switch mosq_err_t(code) {
    case MOSQ_ERR_PROTOCOL, MOSQ_ERR_MALFORMED_PACKET: true
    default: false
    }
  }

  /// Whether the connection is gone, rather than the message refused.
  var isConnectionLost: Bool {
    switch mosq_err_t(code) {
    case MOSQ_ERR_NO_CONN, MOSQ_ERR_CONN_LOST, MOSQ_ERR_ERRNO, MOSQ_ERR_TLS, MOSQ_ERR_NOMEM: true
    default: false
    }
  }
}
