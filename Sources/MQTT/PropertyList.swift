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
