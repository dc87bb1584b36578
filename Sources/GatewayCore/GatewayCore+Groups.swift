// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Devices
package import LastOut

/// Changes of groups and scenes: several devices change at one instant.
extension GatewayCore {
  /// Accepts a change of a group's key: each member is asked for it, and may reject it.
  ///
  /// - Throws: Why the first member rejects it, if all of them do.
  mutating func changeGroup(
    _ change: ValueChange,
    of key: KeyIndex,
    at now: Moment,
    _ options: ChangeOptions
  ) throws(ValidationError) {
    let registry = registry
    let number = nextNumber()
    let part = GroupPart(
      key: key,
      number: number,
      name: registry.devices[registry[key].device].id
    )
    var members = options
    members.origin = ChangeOrigin(
      id: options.origin?.id,
      source: options.origin?.source ?? "mqtt",
      wantsPhases: true,
      group: part
    )
    let change = commands.groupChange(change, of: key)
    var accepted: [KeyIndex] = []
    var rejected: [(key: KeyIndex, error: ValidationError)] = []
    for member in registry.groups.members(of: key) {
      do throws(ValidationError) {
        let change = try commands.memberChange(change, for: member)
        try pipeline.change(change, of: member, members, &outbox, at: now)
        accepted.append(member)
      } catch {
        rejected.append((member, error))
      }
    }
    if accepted.isEmpty, let first = rejected.first { throw first.error }
    for (member, error) in rejected {
      reject(member, reason: error.description, at: now, origin: members.origin)
    }
    var value: Value?
    if case .set(let given) = change { value = given }
    pipeline.commands.recordGroupPhase(.accepted, of: number, for: key, at: now)
    groups.begin(
      number,
      of: key,
      value,
      members: accepted,
      rejected: rejected.map { (Self.name($0.key, in: registry), $0.error.description) },
      origin: options.origin,
      canConfirm: registry[key].property.confirm != nil,
      at: now
    )
  }

  /// Accepts values of several devices at one instant, each for itself.
  ///
  /// - Returns: For each value why it was rejected, or `nil`.
  package mutating func changeEach(
    _ values: [(key: KeyIndex, value: Value)],
    at now: Moment,
    _ options: ChangeOptions
  ) -> [ValidationError?] {
    var settling = options
    settling.skipsQuiet = false
    var results: [ValidationError?] = []
    for (key, value) in values {
      do throws(ValidationError) {
        try change(.set(value), of: key, at: now, settling)
        results.append(nil)
      } catch {
        results.append(error)
      }
    }
    guard options.skipsQuiet else { return results }
    // Only now, so that one message may carry several of a device.
    for (key, _) in values { flush(key, at: now, source: options.origin?.source ?? "mqtt") }
    return results
  }

  /// The next notice or event; events of groups follow those of their members.
  mutating func popReady() -> Effect? {
    guard let effect = outbox.popFirst() else { return nil }
    guard !groups.isEmpty, case .emit(let event) = effect, let part = event.origin?.group else {
      return effect
    }
    let name = Self.name(event.key, in: registry)
    for event in groups.observe(event, of: part, named: name) {
      pipeline.commands.recordGroupPhase(
        event.phase,
        of: event.number,
        for: event.key,
        at: event.at
      )
      outbox.emit(event)
    }
    return effect
  }

  /// How a reason names a member.
  private static func name(_ key: KeyIndex, in registry: Registry) -> String {
    registry.devices[registry[key].device].id
  }
}
