// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto

/// One connection attempt: its handle, and the receiver of the library's callbacks.
///
/// One thread at a time uses it: first the connecting thread, then the loop's thread.
@safe final class Connection: @unchecked Sendable {
  // Sendable because ownership moves through ConnectThread's locked slot; two threads never use it at
  // the same time.

  let handle: MosquittoHandle
  /// Set once the loop owns the connection; the owner outlives every call into the library.
  unowned var client: MQTTClient?
  /// The number of callbacks so far; shows whether a call into the library did anything.
  private(set) var callbackCount = 0
  /// The CONNACK, until the client has read it.
  var connack: Connack?
  /// Why the library closed the connection: a DISCONNECT's code or an error number.
  private(set) var disconnectCode: Int32?
  /// The last error in the library's log, such as OpenSSL's message about a certificate.
  private(set) var lastComplaint: String?
  /// OpenSSL's result for the broker's certificate at the library's last error.
  private var verdict: Int?

  /// The broker's reply to CONNECT.
  struct Connack: Hashable, Sendable {
    var code: Int32
    var sessionPresent: Bool
    /// MQTT 5: how many unanswered publishes the broker accepts.
    var receiveMaximum: Int?
  }

  init(configuration: MQTTConfiguration) throws(MosquittoError) {
    handle = try MosquittoHandle(configuration: configuration)
    handle.deliver(to: self)
  }

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
      connection?.connack = Connack(
        code: code,
        sessionPresent: flags & 1 != 0,
        receiveMaximum: unsafe found == nil ? nil : Int(maximum)
      )
    }
    unsafe mosquitto_disconnect_v5_callback_set(pointer) { _, context, code, _ in
      unsafe Connection.from(context)?.disconnectCode = code
    }
    unsafe mosquitto_publish_v5_callback_set(pointer) { _, context, identifier, code, _ in
      unsafe Connection.from(context)?.client?.wasAnswered(identifier, code: code)
    }
    unsafe mosquitto_subscribe_v5_callback_set(pointer) { _, context, identifier, count, codes, _ in
      let granted = unsafe UnsafeBufferPointer(start: codes, count: Int(count))
      unsafe Connection.from(context)?.client?.wasSubscribed(identifier, granted: Array(granted))
    }
    unsafe mosquitto_message_v5_callback_set(pointer) { _, context, message, properties in
      guard let message = unsafe message else { return }
      unsafe Connection.from(context)?.client?.received(message, properties: properties)
    }
    unsafe mosquitto_log_callback_set(pointer) { mosquitto, context, level, text in
      guard level & MOSQ_LOG_ERR != 0, let text = unsafe text else { return }
      let connection = unsafe Connection.from(context)
      unsafe connection?.lastComplaint = String(cString: text)
      unsafe connection?.verdict = TLSFailure.verdict(of: mosquitto)
    }
  }

  /// The reason of a failure, with the meaning of the library's last error or the error itself.
  func reason(_ reason: String, _ configuration: MQTTConfiguration) -> String {
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

  /// Removes the callback for the library's log.
  ///
  /// With a callback, the library formats a line for each packet, which costs more than reading the
  /// packet. The messages about connecting come earlier.
  static func endLog(of pointer: OpaquePointer) {
    unsafe mosquitto_log_callback_set(pointer, nil)
  }

  private static func from(_ context: UnsafeMutableRawPointer?) -> Connection? {
    guard let context = unsafe context else { return nil }
    let connection = unsafe Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue()
    connection.callbackCount &+= 1
    return connection
  }
}
