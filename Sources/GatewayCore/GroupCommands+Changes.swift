// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut
import Values

/// What a change of a group becomes: a change of each member, and one command that follows them.
extension GroupCommands {
  /// Accepts a change of a group's key: each member is asked for it, and may reject it.
  ///
  /// - Throws: Why the first member rejects it, if all of them do.
  mutating func change(
    _ change: ValueChange,
    of key: KeyIndex,
    at now: Moment,
    delay: Duration?,
    _ options: ChangeOptions,
    apartFrom elsewhere: DevicesElsewhere,
    in pipeline: inout CommandPipeline,
    _ outbox: inout Outbox
  ) throws(ValidationError) {
    let registry = pipeline.commands.registry
    let number = pipeline.commands.dispatcher.log.nextNumber()
    let part = GroupPart(
      key: key,
      number: number,
      name: registry.id(ofDevice: registry.device(of: key))
    )
    var members = options
    members.origin = ChangeOrigin(
      id: options.origin?.id,
      source: options.origin?.source ?? "mqtt",
      wantsPhases: true,
      group: part
    )
    let change = pipeline.commands.groupChange(change, of: key)
    var accepted: [KeyIndex] = []
    var rejected: [(key: KeyIndex, error: ValidationError)] = []
    for member in registry.groups.members(of: key) {
      do throws(ValidationError) {
        let change = try pipeline.commands.memberChange(change, for: member)
        if elsewhere.contains(registry.device(of: member)) {
          outbox.append(
            .passOn(
              PassedChange(
                member: member,
                change: change,
                options: options,
                number: number
              )
            )
          )
          accepted.append(member)
          continue
        }
        try pipeline.change(change, of: member, delay: delay, members, &outbox, at: now)
        accepted.append(member)
      } catch {
        rejected.append((member, error))
      }
    }
    if accepted.isEmpty, let first = rejected.first { throw first.error }
    for (member, error) in rejected {
      pipeline.commands.dispatcher.log.reject(
        member,
        reason: error.description,
        at: now,
        origin: members.origin
      )
    }
    var value: Value?
    if case .set(let given) = change { value = given }
    pipeline.commands.dispatcher.log.recordGroupPhase(.accepted, of: number, for: key, at: now)
    begin(
      number,
      of: key,
      value,
      members: accepted,
      rejected: rejected.map { (Self.name($0.key, in: registry), $0.error.description) },
      origin: options.origin,
      canConfirm: registry.definition(of: key).property.confirm != nil,
      at: now
    )
  }

  /// The next notice or event; events of groups follow those of their members.
  mutating func popReady(
    from outbox: inout Outbox,
    in pipeline: inout CommandPipeline
  ) -> Effect? {
    guard let effect = outbox.popFirst() else { return nil }
    guard !isEmpty, case .emit(let event) = effect, let part = event.origin?.group else {
      return effect
    }
    follow(event, of: part.number, in: &pipeline, &outbox)
    return effect
  }

  /// Follows an event of a member, and emits what follows of the group.
  mutating func follow(
    _ event: CommandEvent,
    of number: UInt64,
    in pipeline: inout CommandPipeline,
    _ outbox: inout Outbox
  ) {
    let name = Self.name(event.key, in: pipeline.commands.registry)
    for event in observe(event, of: number, named: name) {
      pipeline.commands.dispatcher.log.recordGroupPhase(
        event.phase,
        of: event.number,
        for: event.key,
        at: event.at
      )
      outbox.emit(event)
    }
  }

  /// How a reason names a member.
  private static func name(_ key: KeyIndex, in registry: Registry) -> String {
    registry.id(ofDevice: registry.device(of: key))
  }
}
