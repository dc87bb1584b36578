// Settle
// SPDX-License-Identifier: Apache-2.0

/// The properties of a device by identifier and alias, as bytes.
///
/// A few names are compared one by one, which takes less time and memory than a hash table.
struct PropertyNames: Sendable {
  private static let few = 12

  /// The bytes of all names, one name after the other.
  private let bytes: [UInt8]
  /// Where each name ends, and the place of its property.
  private let names: [(end: Int32, place: Int32)]
  /// Many names.
  private let table: KeyNames?

  init(_ device: Device) {
    var all: [(name: String, place: Int)] = []
    for (place, property) in device.properties.enumerated() { all.append((property.id, place)) }
    for (place, property) in device.properties.enumerated() {
      all += property.aliases.map { ($0, place) }
    }
    guard all.count <= Self.few else {
      var table = KeyNames()
      for (name, place) in all { table.insert(name, target: Int32(place)) }
      self.table = table
      (bytes, names) = ([], [])
      return
    }
    var bytes: [UInt8] = []
    var names: [(end: Int32, place: Int32)] = []
    for (name, place) in all {
      bytes += Array(name.utf8)
      names.append((Int32(bytes.count), Int32(place)))
    }
    (self.bytes, self.names) = (bytes, names)
    table = nil
  }

  /// The place of the property with this name; the first of several.
  func find(_ name: Span<UInt8>) -> Int? {
    if let table { return table.find(name).map { Int($0) } }
    var start = 0
    for (end, place) in names {
      if Int(end) - start == name.count, isEqual(name, from: start) { return Int(place) }
      start = Int(end)
    }
    return nil
  }

  private func isEqual(_ name: Span<UInt8>, from start: Int) -> Bool {
    for index in name.indices where bytes[start + index] != name[index] { return false }
    return true
  }
}
