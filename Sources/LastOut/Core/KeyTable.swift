// Settle
// SPDX-License-Identifier: Apache-2.0

/// Interns names, as raw bytes, to dense ``KeyIndex`` numbers through one open-addressed table.
public struct KeyTable: ~Copyable {
  public init(capacity: Int = 64) {
    fatalError("skeleton")
  }

  public var count: Int { fatalError("skeleton") }

  /// The index of `name`, which is added if it is new.
  public mutating func intern(_ name: Span<UInt8>) -> KeyIndex { fatalError("skeleton") }
  public mutating func intern(_ name: String) -> KeyIndex { fatalError("skeleton") }

  /// The index of `name`, if it was interned.
  public func find(_ name: Span<UInt8>) -> KeyIndex? { fatalError("skeleton") }
  public func find(_ name: String) -> KeyIndex? { fatalError("skeleton") }

  /// The name behind `index`.
  public func name(of index: KeyIndex) -> String { fatalError("skeleton") }
}
