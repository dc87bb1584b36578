// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import Devices
import GatewayCore
import LastOut
import Values

/// A request that a member executes.
struct Executing {
  let request: ClientRequest
  /// The member that has passed it on, and its number there; `nil` where it was asked here.
  let sender: (member: SimulatedMember, number: UInt64)?
  var isAnswered = false
  var isOver = false
}

/// What clients ask of a member, and what it passes on, as `GatewayHost` does.
extension SimulatedMember {
  func ask(_ request: ClientRequest) {
    if request.partition == nil { executeGroup(request) } else { executeOrPass(request) }
    turn()
  }

  private func executeOrPass(_ request: ClientRequest) {
    guard let partition = request.partition else { return }
    if accepting.contains(partition), !passed.isBusy(partition) {
      execute(request, for: nil)
    } else {
      pass(request)
    }
  }

  private func pass(_ request: ClientRequest) {
    guard let partition = request.partition else { return }
    let target = RequestTarget.owner(partition)
    let number = passed.pass(to: target, about: request.device, limit: .max, at: now)
    if let number { forwarded[number] = request }
  }

  private func execute(
    _ request: ClientRequest,
    for sender: (member: SimulatedMember, number: UInt64)?
  ) {
    let order = world.executed(request)
    executing[UInt64(order)] = Executing(request: request, sender: sender)
    perform(request, as: order, request.part?.value ?? order)
  }

  /// Executes a request about a key, a group's or another.
  private func perform(_ request: ClientRequest, as order: Int, _ value: Int) {
    let origin = ChangeOrigin(replyTo: UInt64(order), wantsPhases: request.wantsPhases)
    let key = request.key
    switch request.verb {
    case .flush:
      core.flush(key, at: now, source: "cli")
      world.taken(order, as: order, of: key, request.verb)
      return reply(to: origin, nil, isAnswer: true, isFinal: true)
    case .cancel:
      world.taken(order, as: order, of: key, request.verb)
      core.cancel(key, at: now, source: "cli")
      return reply(to: origin, nil, isAnswer: true, isFinal: true)
    case .set, .setNow, .stop: break
    }
    let given: Value = request.verb == .stop ? .text(ClusterHouse.stop) : .number(Double(value))
    let options = ChangeOptions(origin: origin, skipsQuiet: request.verb == .setNow)
    do throws(ValidationError) {
      try core.change(.set(given), of: key, at: now, options)
      world.taken(order, as: value, of: key, request.verb)
      if request.verb == .stop { stops[key] = order }
    } catch {
      world.refused(key)
      reply(to: origin, nil, isAnswer: true, isFinal: true)
    }
  }

  // MARK: - Groups

  /// A group's request is executed by whoever is asked; the parts of devices that others drive are
  /// passed on.
  private func executeGroup(_ request: ClientRequest) {
    let members = world.registry.groups.members(of: request.key)
    switch request.verb {
    case .flush, .cancel:
      let others = members.filter { !isHere($0) }
      request.openParts = others.count
      for member in others { pass(world.part(of: request, for: member)) }
      // What waits of a partition that is being given away ends too.
      for member in members where core.pending(member) != nil {
        world.taken(0, as: 0, of: member, request.verb)
      }
      if request.verb == .flush {
        core.flush(request.key, at: now, source: "cli", isHereOnly: true)
      } else {
        core.cancel(request.key, at: now, source: "cli", isHereOnly: true)
      }
      if others.isEmpty { world.ended(request, nil) }
    case .set, .setNow, .stop:
      let value = world.executed(request)
      executing[UInt64(value)] = Executing(request: request, sender: nil)
      for member in members where isHere(member) {
        let part = world.part(of: request, for: member)
        world.taken(world.executed(part), as: value, of: member, request.verb)
        world.ended(part, nil)
      }
      perform(request, as: value, value)
    }
  }

  private func isHere(_ key: KeyIndex) -> Bool {
    core.executesParts(ofDevice: world.registry.device(of: key))
  }

  /// The core asks for the change of a group's member whose device another member drives.
  func passOn(_ change: PassedChange) {
    guard let order = change.options.origin?.replyTo, let whole = executing[order]?.request else {
      return
    }
    pass(world.part(of: whole, for: change.member, (change, Int(order))))
  }

  /// Tells the core what has become of a part of a group's change; nothing follows `nil`.
  private func report(_ request: ClientRequest, _ event: CommandEvent?, isLast: Bool) {
    guard let change = request.part?.change else { return }
    core.memberReported(
      change.member,
      event?.phase ?? .failed,
      reason: event == nil ? "nobody knows" : event?.reason,
      collapsed: event?.collapsed ?? 0,
      isFinal: isLast || event == nil,
      ofGroup: change.number,
      at: now
    )
  }

  // MARK: - Replies

  /// A change that was asked for has an event, which goes to whoever has asked; `nil` for an answer
  /// without one.
  func reply(to origin: ChangeOrigin?, _ event: CommandEvent?, isAnswer: Bool, isFinal: Bool) {
    guard let origin, var state = executing[origin.replyTo] else { return }
    state.isAnswered = state.isAnswered || isAnswer
    state.isOver = state.isOver || isFinal || !origin.wantsPhases
    let isLast = state.isAnswered && state.isOver
    executing[origin.replyTo] = isLast ? nil : state
    guard let (member, number) = state.sender else {
      report(state.request, event, isLast: isLast)
      if isLast { world.ended(state.request, nil) }
      return
    }
    guard isAnswer || origin.wantsPhases else { return }
    world.send(
      from: self,
      to: member.name,
      { $0.receiveReply(to: number, event, isLast: isLast) },
      onLost: { state.request.hasLostReply = true }
    )
  }

  private func receiveReply(to number: UInt64, _ event: CommandEvent?, isLast: Bool) {
    guard passed.answered(number, isLast: isLast), let request = forwarded[number] else { return }
    report(request, event, isLast: isLast)
    guard isLast else { return }
    forwarded[number] = nil
    world.ended(request, nil)
  }

  // MARK: - Requests for other members

  func advancePassed(_ view: ClusterView) -> Bool {
    passed.advance(
      to: now,
      view,
      isEngineReachable: world.engine.isConnected(name)
    ) { accepting.contains($0) }
    let effects = passed.dequeueEffects()
    for effect in effects { perform(effect) }
    return !effects.isEmpty
  }

  private func perform(_ effect: PassedEffect) {
    switch effect {
    case .send(let number, let other):
      guard let request = forwarded[number] else { return }
      world.say("  \(name): passes \(request.number) on to \(other)")
      world.send(from: self, to: other) { [self] in
        $0.receive(request, numbered: number, from: self)
      } onUndelivered: { [self] in
        world.undelivered()
        passed.undelivered([number], at: now)
      }
    case .perform(let number):
      guard let request = forwarded.removeValue(forKey: number) else { return }
      world.performed()
      execute(request, for: nil)
    case .released(let partition):
      for device in world.devices(of: partition) {
        core.setBehind(passed.isBusy(partition), device: device)
      }
    case .fail(let number, let failure):
      guard let request = forwarded.removeValue(forKey: number) else { return }
      report(request, nil, isLast: true)
      world.ended(request, failure)
    }
  }

  /// Another member has passed a request on.
  private func receive(
    _ request: ClientRequest,
    numbered number: UInt64,
    from sender: SimulatedMember
  ) {
    if let partition = request.partition, accepting.contains(partition) {
      return execute(request, for: (sender, number))
    }
    world.send(from: self, to: sender.name) { $0.receiveMoved(number) }
  }

  private func receiveMoved(_ number: UInt64) {
    world.moved()
    passed.moved(number, at: now)
  }
}
