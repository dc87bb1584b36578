// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import JSONParsing
import LastOut
import Routing

/// Reads the payload of a `…/step` topic: a signed number, or an object with it as `value`.
enum StepPayload {
  static func read(_ payload: Span<UInt8>) throws(ValidationError) -> Double {
    if let amount = NumberText.parse(payload), amount.isFinite { return amount }
    if let amount = (try? JSONParser.parse(payload))?["value"]?.double { return amount }
    throw .wrongType(
      found: "'\(Excerpt.of(Text.of(payload)))'",
      expected: "a signed number such as +5",
      suggestion: nil
    )
  }
}
