// Settle
// SPDX-License-Identifier: Apache-2.0

/// One thing that an import changes in a file.
package struct ImportChange: Hashable, Sendable {
  package enum Kind: String, Hashable, Sendable {
    case added, changed, removed
  }

  package let kind: Kind
  /// `device`, `device/property` or `device/property/field`.
  package let path: String

  package init(_ kind: Kind, _ path: String) {
    self.kind = kind
    self.path = path
  }
}
