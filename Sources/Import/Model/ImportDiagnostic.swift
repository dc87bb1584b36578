// Settle
// SPDX-License-Identifier: Apache-2.0

/// Something that an import did not take, or not as it was, and why.
package struct Remark: Hashable, Sendable {
  package enum Kind: String, Hashable, Sendable {
    /// An announcement that cannot be read, or states what cannot be.
    case refused
    /// A value that is only reported; Settle's properties are what can be set.
    case readOnly = "read_only"
    /// Something that can be set and that Settle has no form for.
    case leftOut = "left_out"
    /// Taken, but not all of it.
    case partly
    /// What a person changed, and the device now says otherwise.
    case kept
    /// In the file, and no longer announced.
    case gone
  }

  package var kind: Kind
  /// A device, a property or a topic, fit for a terminal.
  package var subject: String
  package var reason: String

  package init(_ kind: Kind, _ subject: String, _ reason: String) {
    self.kind = kind
    self.subject = subject
    self.reason = reason
  }
}
