// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc

/// The flags and properties of a received message.
///
/// MQTT 5 properties are read on demand.
@safe package struct InboundMessage: ~Copyable {
  package struct Flags: Hashable, Sendable {
    package var qos: Int
    package var retained: Bool
    package init(qos: Int, retained: Bool) {
      self.qos = qos
      self.retained = retained
    }
  }

  package let flags: Flags
  /// The library's list, valid during the callback.
  private let properties: OpaquePointer?

  /// A message without properties.
  package init(flags: Flags) {
    self.flags = flags
    unsafe properties = nil
  }

  init(flags: Flags, properties: OpaquePointer?) {
    self.flags = flags
    unsafe self.properties = properties
  }

  /// The MQTT 5 response topic, if the sender requests a reply.
  package var responseTopic: String? {
    var text: UnsafeMutablePointer<CChar>?
    unsafe mosquitto_property_read_string(
      properties,
      MQTT_PROP_RESPONSE_TOPIC.code,
      &text,
      false
    )
    guard let text = unsafe text else { return nil }
    defer { unsafe free(text) }
    return unsafe String(validatingCString: text)
  }

  /// The MQTT 5 correlation data, to send with the reply.
  package var correlationData: [UInt8]? {
    var bytes: UnsafeMutableRawPointer?
    var count: UInt16 = 0
    unsafe mosquitto_property_read_binary(
      properties,
      MQTT_PROP_CORRELATION_DATA.code,
      &bytes,
      &count,
      false
    )
    guard let bytes = unsafe bytes else { return nil }
    defer { unsafe free(bytes) }
    return unsafe Array(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
  }

  /// The value of the first MQTT 5 user property called `name`.
  package func userProperty(_ name: String) -> String? {
    var key: UnsafeMutablePointer<CChar>?
    var value: UnsafeMutablePointer<CChar>?
    var isFirst = true
    var position = unsafe properties
    while true {
      unsafe position = mosquitto_property_read_string_pair(
        position,
        MQTT_PROP_USER_PROPERTY.code,
        &key,
        &value,
        !isFirst
      )
      guard unsafe position != nil, let foundKey = unsafe key, let foundValue = unsafe value else {
        return nil
      }
      defer {
        unsafe free(foundKey)
        unsafe free(foundValue)
      }
      isFirst = false
      if unsafe String(validatingCString: foundKey) == name {
        return unsafe String(validatingCString: foundValue)
      }
    }
  }
}
