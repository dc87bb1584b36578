// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices

/// One line of the grammar of SPEC section 6: what `pipe`, the socket, `simulate`, `record`, `demo --script` read.
package struct ControlRequest: Hashable, Sendable {
  package enum Operation: Hashable, Sendable {
    case set(JSONValue)
    case step(Double)
    case toggle
    case cancel
    case flush
    case get
    case pending
    case watch
    case reload
  }
  package enum Wait: String, Hashable, Sendable { case sent, confirmed }

  package var operation: Operation
  /// The key, or the pattern where one is taken; empty for `reload`.
  package var key: String
  package var id: String?
  package var source: String?
  package var now = false
  package var ttl: Duration?
  package var wait: Wait?
  /// Milliseconds on a virtual or scripted clock.
  package var at: Double?

  package init(_ operation: Operation, key: String) {
    self.operation = operation
    self.key = key
  }

  /// Reads one line.
  package init(line: Span<UInt8>) throws(GrammarError) { fatalError("skeleton") }

  /// The line that says this, without a line break.
  package var line: [UInt8] { fatalError("skeleton") }
}

/// Why a line was not understood; `id` is given back if it could be read.
package struct GrammarError: Error, Hashable, Sendable {
  package let code: String
  package let message: String
  package let id: String?
  package init(code: String, message: String, id: String?) {
    self.code = code
    self.message = message
    self.id = id
  }
}
