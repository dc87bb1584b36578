// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import Control
import Devices
import Engine
import GatewayCore
import JSON
import LastOut
import Operations
import Values

/// Requests and changes whose devices other members of a cluster drive.
extension GatewayHost {
  /// Passes a request on to the members that drive its devices; `false` if it is for this gateway
  /// alone.
  func passOn(_ request: ControlRequest, for requester: any Requester, at now: Moment) -> Bool {
    guard let cluster, !requester.isPeer else { return false }
    switch request.operation {
    case .set, .step, .toggle, .describe:
      return passToOwner(request, for: requester, cluster, at: now)
    case .pending, .log, .flush, .cancel:
      if Pattern(context.registry.pattern(for: request.key)).isLiteral {
        return passToOwner(request, for: requester, cluster, at: now)
      }
      return gather(request, for: requester, cluster, at: now)
    case .scene, .get, .watch, .record, .reload, .status, .devices: return false
    }
  }

  private func passToOwner(
    _ request: ControlRequest,
    for requester: any Requester,
    _ cluster: ClusterMember,
    at now: Moment
  ) -> Bool {
    guard let device = request.device(in: context.registry) else { return false }
    if context.registry.devices[device].group != nil {
      return endWaits(request, for: requester, cluster, at: now)
    }
    guard let partition = context.places?.partition(ofDevice: device) else { return false }
    let isOwn = context.places?.drives(partition) ?? false
    guard !isOwn || cluster.passed.isBusy(partition) else { return false }
    if context.core.isShuttingDown { return false }  // It is rejected here, with the reason.
    cluster.passed.pass(
      request,
      to: .owner(partition),
      for: ShownChange(request, for: requester, in: context, cluster.rows),
      at: now
    )
    return true
  }

  /// Flushes or cancels what waits for the members of a group, wherever, and replies once.
  private func endWaits(
    _ request: ControlRequest,
    for requester: any Requester,
    _ cluster: ClusterMember,
    at now: Moment
  ) -> Bool {
    guard request.operation == .flush || request.operation == .cancel,
      let group = try? context.registry.index(of: request.key)
    else { return false }
    let others = context.registry.groups.members(of: group).filter { !context.isHere($0) }
    guard !others.isEmpty else { return false }
    let reply = GatheredReply(request, for: requester, parts: others.count + 1, isOfOneKey: true)
    for member in others {
      pass(request, to: member, for: reply.makePart(), cluster, at: now)
    }
    let own = reply.makePart()
    requests.performHere(request, for: own, line: 1)
    own.hasReplied()
    return true
  }

  /// Passes a request on to the owner of a key, with that key.
  private func pass(
    _ request: ControlRequest,
    to key: KeyIndex,
    for requester: any Requester,
    _ cluster: ClusterMember,
    at now: Moment
  ) {
    let device = context.registry.device(of: key)
    guard let partition = context.places?.partition(ofDevice: device) else { return }
    var request = request
    request.key = context.registry[key].key
    cluster.passed.pass(request, to: .owner(partition), for: requester, at: now)
  }

  /// Asks every member about keys, and replies once.
  private func gather(
    _ request: ControlRequest,
    for requester: any Requester,
    _ cluster: ClusterMember,
    at now: Moment
  ) -> Bool {
    let others = cluster.others
    guard !others.isEmpty else { return false }
    let reply = GatheredReply(request, for: requester, parts: others.count + 1)
    for other in others {
      cluster.passed.pass(request, to: .member(other), for: reply.makePart(), at: now)
    }
    let own = reply.makePart()
    requests.performHere(request, for: own, line: 1)
    own.hasReplied()
    return true
  }

  // MARK: - Parts of groups and scenes

  /// Passes a change of a group's member on.
  func passOn(_ change: PassedChange, at now: Moment) {
    guard let cluster else { return }
    var request = ControlRequest(change.change.operation, key: "")
    request.replyID = change.options.origin?.id
    request.source = change.options.origin?.source ?? "mqtt"
    request.by = change.options.origin?.by
    request.now = change.options.skipsQuiet
    request.ttl = change.options.ttl
    request.wait = .sent
    let part = GroupMemberRequester(change, in: context)
    pass(request, to: change.member, for: part, cluster, at: now)
  }

  /// Passes the flush or the cancel of a group's member on.
  func passOn(_ change: RecordedChange, at now: Moment) {
    guard let cluster else { return }
    let operation: ControlRequest.Operation =
      if case .flush = change.operation { .flush } else { .cancel }
    var request = ControlRequest(operation, key: "")
    request.source = change.source
    pass(request, to: change.key, for: SilentRequester(), cluster, at: now)
  }

  /// Passes values of a scene on that a message has set; its sender gets the events of its own
  /// gateway alone.
  func passOn(
    _ values: [(key: KeyIndex, value: Value)],
    from origin: ChangeOrigin?,
    at now: Moment
  ) {
    var request = ControlRequest(.toggle, key: "")
    request.source = origin?.source ?? "mqtt"
    passOn(values, of: request, for: SilentRequester(), at: now)
  }

  /// Passes values of a scene on whose devices other members drive.
  func passOn(
    _ values: [(key: KeyIndex, value: Value)],
    of request: ControlRequest,
    for requester: any Requester,
    at now: Moment
  ) {
    guard let cluster else { return }
    for (key, value) in values {
      var part = request
      part.operation = .set(value.json)
      pass(part, to: key, for: requester, cluster, at: now)
    }
  }
}

extension ClusterMember {
  /// Whether it takes part: its presence was written and renewed lately.
  var isMember: Bool { membership.standing == .member && engine.problem == nil }

  /// Why it does not, in words.
  var obstacle: String { engine.problem ?? "the members' records are being read" }

  /// The other members that are there.
  var others: [String] {
    membership.view.peers.filter { $0.key != name && $0.value.record.state.isPresent }.keys.sorted()
  }
}

extension ValueChange {
  fileprivate var operation: ControlRequest.Operation {
    switch self {
    case .set(let value): .set(value.json)
    case .step(let amount): .step(.number(amount))
    case .toggle: .toggle
    }
  }
}

/// The sender of a change that is passed on: once the owner has accepted a value, it is shown here
/// too.
private final class ShownChange: Requester {
  private let requester: any Requester
  private var value: (json: JSONValue, key: KeyIndex)?
  private let rows: PeerRows

  var number: UInt64 { requester.number }
  var hasStoppedReading: Bool { requester.hasStoppedReading }

  init(
    _ request: ControlRequest,
    for requester: any Requester,
    in context: GatewayContext,
    _ rows: PeerRows
  ) {
    self.requester = requester
    self.rows = rows
    guard case .set(let json) = request.operation,
      let key = context.registry.index(ofKey: request.key.utf8.span)
    else { return }
    value = (json, key)
  }

  func pass(_ line: [UInt8], isFinal: Bool) {
    if let value = value.take(), line.isAccepted {
      rows.accepted(value.json, of: value.key, at: EventLoop.now())
    }
    requester.pass(line, isFinal: isFinal)
  }

  func send(_ reply: ControlReply) { requester.send(reply) }
  func owesReply() { requester.owesReply() }
  func expect(parts: Int) { requester.expect(parts: parts) }
  func hasReplied() { requester.hasReplied() }
  func beginWait() { requester.beginWait() }
  func endWait() { requester.endWait() }
  func setRejection(_ reason: ValidationError) { requester.setRejection(reason) }
}

extension [UInt8] {
  private static let accepted = Array(#","phase":"accepted""#.utf8)

  /// Whether the line is an event of this phase.
  fileprivate var isAccepted: Bool {
    guard count >= Self.accepted.count else { return false }
    return indices.dropLast(Self.accepted.count - 1).contains { place in
      self[place...].starts(with: Self.accepted)
    }
  }
}

/// The sender of a change whose replies nobody reads.
private final class SilentRequester: Requester {
  let number: UInt64 = 1
  func send(_ reply: ControlReply) {}
}

/// Follows the change of a group's member for the group's command.
private final class GroupMemberRequester: Requester {
  let number: UInt64 = 1
  private let change: PassedChange
  private let context: GatewayContext
  private var isEnded = false

  init(_ change: PassedChange, in context: GatewayContext) {
    self.change = change
    self.context = context
  }

  func pass(_ line: [UInt8], isFinal: Bool) {
    guard let reply = ControlReply(line: line.span) else { return }
    guard case .event(let event, _) = reply else { return send(reply) }
    report(
      event.phase,
      reason: event.reason,
      collapsed: event.collapsed,
      isFinal: isFinal || event.phase == .rejected
    )
  }

  func send(_ reply: ControlReply) {
    switch reply {
    case .event(let event, _): report(event.phase, reason: event.reason, isFinal: true)
    case .failure(let error, _): report(.failed, reason: error.message, isFinal: true)
    case .watched, .recorded, .targets, .pending, .described, .flushed, .cancelled, .reloaded,
      .status, .logged, .devices, .words, .previewed:
      break
    }
  }

  private func report(_ phase: Phase, reason: String?, collapsed: Int = 0, isFinal: Bool) {
    guard !isEnded else { return }
    isEnded = isFinal
    context.core.memberReported(
      change.member,
      phase,
      reason: reason,
      collapsed: collapsed,
      isFinal: isFinal,
      ofGroup: change.number,
      at: EventLoop.now()
    )
  }
}

/// A request about keys of several members: collects what each replies, and replies once.
final class GatheredReply {
  private let request: ControlRequest
  private let requester: any Requester
  private var left: Int
  private let isOfOneKey: Bool
  private var pending: [PendingRow] = []
  private var logged: [EventObject] = []
  private var count = 0
  private var failure: ErrorReply?

  /// `parts` is how many replies are collected; `isOfOneKey` whether they are about one key, which
  /// counts once.
  init(
    _ request: ControlRequest,
    for requester: any Requester,
    parts: Int,
    isOfOneKey: Bool = false
  ) {
    self.request = request
    self.requester = requester
    self.isOfOneKey = isOfOneKey
    left = parts
    requester.owesReply()
  }

  /// Who sends the request to one of the members.
  func makePart() -> any Requester { Part(self) }

  private func receive(_ reply: ControlReply) {
    switch reply {
    case .pending(let rows, _): pending += rows
    case .logged(let rows, _): logged += rows
    case .flushed(let part, _), .cancelled(let part, _): count += part
    case .failure(let error, _): failure = error
    case .event, .watched, .recorded, .targets, .described, .reloaded, .status, .devices, .words,
      .previewed:
      break
    }
  }

  private func partEnded() {
    left -= 1
    guard left == 0 else { return }
    requester.send(reply)
    requester.hasReplied()
  }

  private var reply: ControlReply {
    let id = request.replyID
    if let failure { return .failure(failure, id: id) }
    let count = isOfOneKey ? min(count, 1) : count
    return switch request.operation {
    case .pending: .pending(pending, id: id)
    case .log: .logged(logged.sorted { ($0.key, $0.at) < ($1.key, $1.at) }, id: id)
    case .flush: .flushed(count, id: id)
    default: .cancelled(count, id: id)
    }
  }

  private final class Part: Requester {
    let number: UInt64 = 1
    private let whole: GatheredReply
    private var isEnded = false

    init(_ whole: GatheredReply) { self.whole = whole }

    func send(_ reply: ControlReply) { whole.receive(reply) }

    func hasReplied() {
      guard !isEnded else { return }
      isEnded = true
      whole.partEnded()
    }
  }
}
