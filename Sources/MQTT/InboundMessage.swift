// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc

/// What came with a message beside topic and payload.
///
/// MQTT 5 properties are read only when asked for.
@safe package struct InboundMessage: ~Copyable {
  package let flags: MQTTClient.MessageFlags
  /// The library's list, valid during the call that lends this value.
  private let properties: OpaquePointer?

  /// A message without properties.
  package init(flags: MQTTClient.MessageFlags) {
    self.flags = flags
    unsafe properties = nil
  }

  init(flags: MQTTClient.MessageFlags, properties: OpaquePointer?) {
    self.flags = flags
    unsafe self.properties = properties
  }

  /// MQTT 5 response topic, if the sender asked for an answer.
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

  /// MQTT 5 correlation data, to be sent along with the answer.
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
