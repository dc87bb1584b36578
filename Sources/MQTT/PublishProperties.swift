// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto

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
