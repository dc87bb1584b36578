// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// All devices, with every property numbered densely: a property's ``KeyIndex`` is its place in
/// ``properties``, and the same number serves the queue.
package struct Registry: Sendable {
  package struct Entry: Sendable {
    /// `device/property`.
    package let key: String
    /// Place in ``Registry/devices``.
    package let device: Int
    package let property: Property
  }

  package let devices: [Device]
  package let properties: [Entry]

  package init(_ devices: [Device]) { fatalError("skeleton") }

  /// Resolves `device/property`; aliases are taken.
  package func index(of key: String) throws(ValidationError) -> KeyIndex { fatalError("skeleton") }
  /// The device called `id`.
  package func deviceIndex(of id: String) throws(ValidationError) -> Int { fatalError("skeleton") }
  /// A property, or alias, of a device.
  package func index(of property: String, inDevice device: Int) throws(ValidationError) -> KeyIndex { fatalError("skeleton") }
  /// The properties of a device, as a range of indices.
  package func indices(ofDevice device: Int) -> Range<Int32> { fatalError("skeleton") }
  /// Keys that match a pattern: `*` any characters, `/` included; `?` one. In order of definition.
  package func indices(matching pattern: String) -> [KeyIndex] { fatalError("skeleton") }
}
