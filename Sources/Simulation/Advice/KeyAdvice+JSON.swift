// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
internal import LastOut
import Values

extension KeyAdvice {
  /// One object for each policy, in the order of ``rows``.
  package var json: [JSONValue] { rows.map(json) }

  private func json(_ row: Row) -> JSONValue {
    let (policy, outcome) = (row.policy, row.outcome)
    var members: [JSONValue.Member] = [
      .init("key", .string(key.name)),
      .init(
        "policy",
        .object([
          "delay_ms": Self.milliseconds(policy.delay),
          "max_wait_ms": policy.maxWait.map(Self.milliseconds) ?? .null,
          "leading": .boolean(policy.leading),
          "min_interval_ms": Self.milliseconds(policy.minInterval),
        ])
      ),
      .init("changes", .integer(Int64(changeCount))),
      .init("gestures", .integer(Int64(gestureCount))),
      .init("commands", .integer(Int64(outcome.commands.count))),
      .init("final_p50_ms", Self.milliseconds(outcome.typicalFinal)),
      .init("final_worst_ms", Self.milliseconds(outcome.worstFinal)),
      .init("wait_worst_ms", Self.milliseconds(outcome.worstWait)),
    ]
    if hasLane { members.append(.init("queued", .integer(Int64(outcome.mostQueued)))) }
    members += [
      .init("dominated", .boolean(row.isDominated)),
      .init("suggested", .boolean(row.isSuggested)),
      .init("in_force", .boolean(row.isInForce)),
      .init("line", .string("policy: " + PolicyText.yaml(policy, over: inherited))),
    ]
    return .object(members)
  }

  /// The policy that a shorter line would inherit from, as far as it is known.
  var inherited: Policy? { key.property?.policy }

  private static func milliseconds(_ duration: Duration) -> JSONValue {
    JSONValue(shortest: Double(duration.wholeNanoseconds / 1000) / 1000)
  }
}
