// Settle
// SPDX-License-Identifier: Apache-2.0

/// Something that an import left out or changed, and the reason.
package struct ImportDiagnostic: Hashable, Sendable {
  package enum Kind: String, Hashable, Sendable {
    /// An announcement that is unreadable or invalid.
    case refused
    /// A reading about the device itself, such as its signal strength, or one without a single
    /// value.
    case diagnostic
    /// A value that can be set, in a form that Settle does not support.
    case leftOut = "left_out"
    /// Imported in part.
    case partly
    /// Imported, and its commands control a bridge.
    case controlsBridge = "controls_bridge"
    /// A value that the user edited and that differs from the announcement.
    case kept
    /// In the file and no longer announced.
    case gone
  }

  package var kind: Kind
  /// The device, property or topic, safe for a terminal.
  package var subject: String
  package var reason: String

  package init(_ kind: Kind, _ subject: String, _ reason: String) {
    self.kind = kind
    self.subject = subject
    self.reason = reason
  }
}
