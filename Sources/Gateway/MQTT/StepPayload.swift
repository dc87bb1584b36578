// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import JSONParsing
import LastOut
import Routing
import Values

/// Reads the payload of a `…/step` topic: a signed number or percentage, or an object with it as
/// `value`.
enum StepPayload {
  static func read(_ payload: Span<UInt8>) throws(ValidationError) -> StepAmount {
    if let amount = NumberText.parse(payload), amount.isFinite { return .number(amount) }
    if payload.count <= 40, let amount = StepAmount(percentage: Text.of(payload)) { return amount }
    if let value = (try? JSONParser.parse(payload))?["value"] {
      if let amount = value.double { return .number(amount) }
      if let amount = value.string.flatMap({ StepAmount(percentage: $0) }) { return amount }
    }
    throw .wrongType(
      found: "'\(Excerpt.of(Text.of(payload)))'",
      expected: "a signed number such as +5, or a percentage such as +10%",
      suggestion: nil
    )
  }
}
