// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc

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
