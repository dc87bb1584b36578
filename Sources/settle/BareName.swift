// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

/// A word where a key is needed.
extension GatewayCommand {
  /// Says which key was probably meant by a word without a slash.
  ///
  /// `hint` follows where the word is the name of a device.
  func explainBareName(_ name: String, hint: String = "") throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.describe, key: name))
    guard case .described(let rows, _) = reply else { return .unexpected(reply) }
    guard !rows.isEmpty, !name.contains(where: { "*?".contains($0) }) else {
      Terminal.complain(#"a key names one property, and "\#(name)" is a pattern"#)
      return .badInput
    }
    let keys = rows.prefix(20).map(\.key).joined(separator: ", ")
    let more = rows.count > 20 ? " and \(rows.count - 20) more" : ""
    Terminal.complain(#""\#(name)" is a device; its properties are \#(keys)\#(more)\#(hint)"#)
    return .badInput
  }
}
