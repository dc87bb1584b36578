// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import LastOut
package import Values

/// One step in a command's life.
package struct CommandEvent: Sendable {
  package var key: KeyIndex
  package var phase: Phase
  /// `nil` while a step waits for the device's state.
  package var value: Value?
  package var collapsed: Int
  package var number: UInt64
  package var acceptedAt: Moment
  package var at: Moment
  package var attempt: Int
  package var reason: String?
  package var origin: ChangeOrigin?
  /// Nothing follows for this command.
  package var isFinal: Bool
  /// Until when an accepted value may wait; told to a journal alone.
  package var expiresAt: Moment?
  /// What rides with an accepted value; told to a journal alone.
  package var options: [JSONValue.Member]?
  /// The accepted value leaves at once.
  package var isUrgent = false
  /// The key stands for momentary commands rather than a value.
  package var isAction = false
  /// Rejected because the journal could not keep the value.
  package var isNotDurable = false
}
