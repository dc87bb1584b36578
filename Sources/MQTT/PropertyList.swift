// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto

/// MQTT 5 properties of an outgoing packet; freed with their owner.
@safe struct PropertyList: ~Copyable {
  /// The list, `nil` while empty.
  ///
  /// The library may change it while adding.
  private var list: OpaquePointer?
  /// The first call that failed, if one did.
  private(set) var failure: MosquittoError?

  init() {}

  /// The properties in the library's type; valid as long as this list.
  var pointer: OpaquePointer? { unsafe list }

  mutating func add(_ identifier: Int32, seconds: Duration) {
    let (whole, rest) = seconds.components
    add(identifier, number: UInt32(clamping: whole + (rest > 0 ? 1 : 0)))
  }

  mutating func add(_ identifier: Int32, number: UInt32) {
    record(unsafe mosquitto_property_add_int32(&list, identifier, number), "add_int32")
  }

  mutating func add(_ identifier: Int32, bytes: [UInt8]) {
    guard let count = UInt16(exactly: bytes.count) else {
      record(Int32(MOSQ_ERR_PAYLOAD_SIZE.rawValue), "add_binary")
      return
    }
    record(unsafe mosquitto_property_add_binary(&list, identifier, bytes, count), "add_binary")
  }

  mutating func add(_ identifier: Int32, name: String, value: String) {
    record(
      unsafe mosquitto_property_add_string_pair(&list, identifier, name, value),
      "add_string_pair"
    )
  }

  /// The library owns the list from now on.
  mutating func passOwnership() { unsafe list = nil }

  private mutating func record(_ code: Int32, _ call: String) {
    guard code != 0, failure == nil else { return }
    failure = MosquittoError(call: "mosquitto_property_\(call)", code: code)
  }

  deinit {
    guard unsafe list != nil else { return }
    var list = unsafe list
    unsafe mosquitto_property_free_all(&list)
  }
}

/// MQTT 5 properties of a publish; ignored under 3.1.1.
package struct PublishProperties: Hashable, Sendable {
  /// How long the broker keeps the message for offline subscribers.
  package var expirySeconds: UInt32?
  package var correlationData: [UInt8]?
  /// Control characters, which make brokers disconnect, are sent as spaces.
  package var userProperties: [String: String] = [:]
  package init() {}

  /// The properties in the library's type.
  func list() -> PropertyList {
    var list = PropertyList()
    if let expirySeconds {
      list.add(MQTT_PROP_MESSAGE_EXPIRY_INTERVAL.code, number: expirySeconds)
    }
    if let correlationData {
      list.add(MQTT_PROP_CORRELATION_DATA.code, bytes: correlationData)
    }
    guard !userProperties.isEmpty else { return list }
    for (name, value) in userProperties {
      list.add(MQTT_PROP_USER_PROPERTY.code, name: name, value: Self.printable(value))
    }
    return list
  }

  private static func printable(_ text: String) -> String {
    let isControl = { (scalar: Unicode.Scalar) in
      scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
    }
    guard text.unicodeScalars.contains(where: isControl) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      result.unicodeScalars.append(isControl(scalar) ? " " : scalar)
    }
    return result
  }
}
