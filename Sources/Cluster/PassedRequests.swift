// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Where a request goes.
package enum RequestTarget: Hashable, Sendable {
  /// The owner of a partition.
  case owner(Partition)
  case member(String)
}

/// What the host of a ``PassedRequests`` must do with a request, by its number.
package enum PassedEffect: Hashable, Sendable {
  /// Send it to a member; report by ``PassedRequests/answered(_:isLast:)``,
  /// ``PassedRequests/moved(_:at:)`` or ``PassedRequests/undelivered(_:at:)``.
  case send(UInt64, to: String)
  /// Execute it here: this member drives the device now. Nothing is to be reported.
  case perform(UInt64)
  /// Tell its sender that no further reply comes, and why.
  case fail(UInt64, PassedFailure)
  /// No request about the partition waits or has no answer: ``PassedRequests/isBusy(_:)``.
  case released(Partition)
}

/// Why a request that was passed on has no further reply.
package enum PassedFailure: Hashable, Sendable {
  /// Nobody has it, and nobody has executed it.
  case noOwner
  /// The same, and a later one about the device was executed.
  case overtaken
  /// The member that has it has ended; `hasAnswered` says whether a reply had come before.
  case ended(member: String, hasAnswered: Bool)
  /// The member that has it does not reply.
  case silent
}

/// Decides where requests go about devices that other members of a cluster drive.
///
/// A request goes to the owner once. Where nobody received it, or its receiver does not drive the
/// device, it goes to the owner of then. If the owner ends before it has answered, the sender is
/// told that the outcome is unknown: repeated, the value could follow a newer one. Requests about
/// one device keep their order: while one has no answer, later ones of its partition go nowhere else,
/// and one that must go again goes behind no later one.
///
/// It has no clock and does no I/O. After any call the owner calls
/// ``advance(to:_:isEngineReachable:drives:)``, performs what ``dequeueEffects()`` returns, and arms
/// a timer for ``nextDeadline``.
package struct PassedRequests: Sendable {
  private struct Receiver: Hashable {
    let member: String
    let incarnation: UInt64
  }

  private struct Request {
    let target: RequestTarget
    let device: Int?
    /// When it is given up if nobody has answered.
    let deadline: Moment
    /// Who has it; `nil` while it waits.
    var receiver: Receiver?
    var isAnswered = false
  }

  /// Requests of one target that nobody has, and how many someone has without an answer.
  private struct Line {
    var waiting: [UInt64] = []
    var receiver: Receiver?
    var unanswered = 0
    /// Who has refused one: it gets those that wait one by one, until it has answered.
    var refuser: Receiver?
    /// The newest one that was sent.
    var newestSent: UInt64 = 0
    /// The newest one about each device that was executed, or may have been.
    var newestExecuted: [Int: UInt64] = [:]
  }

  /// How long a request may take to its answer: less than a client waits.
  package static let patience = Duration.seconds(8)
  /// The wait before a request that was refused goes again.
  private static let retry = Duration.milliseconds(30)

  private let member: String
  private var requests: [UInt64: Request] = [:]
  private var lines: [RequestTarget: Line] = [:]
  private var effects: [PassedEffect] = []
  private var lastNumber: UInt64
  private var expiryAt: Moment?
  /// When requests that wait look for a receiver again.
  private var routesAt: Moment?
  private var haveOwnersChanged = false

  /// - Parameters:
  ///   - member: This member's name.
  ///   - number: Requests are numbered from the next one on; different in each process of a name,
  ///     so that a late reply to an earlier process is nobody's.
  package init(member: String, after number: UInt64 = 0) {
    self.member = member
    lastNumber = number
  }

  /// How many requests wait for a reply.
  package var count: Int { requests.count }

  /// Whether a request about a partition must wait behind earlier ones, although this member drives
  /// it.
  package func isBusy(_ partition: Partition) -> Bool { lines[.owner(partition)] != nil }

  /// Returns what to do since the last call, in order.
  package mutating func dequeueEffects() -> [PassedEffect] { exchange(&effects, with: []) }

  /// When ``advance(to:_:isEngineReachable:drives:)`` has something to do.
  package var nextDeadline: Moment? { [routesAt, expiryAt].compactMap(\.self).min() }

  // MARK: - In

  /// Takes a request, and returns its number; `nil` while `limit` requests wait for a reply.
  ///
  /// `device` is the number of the device that it is about; `nil` for several.
  package mutating func pass(
    to target: RequestTarget,
    about device: Int?,
    limit: Int,
    at now: Moment
  ) -> UInt64? {
    guard requests.count < limit else { return nil }
    lastNumber += 1
    let deadline = now.advanced(by: Self.patience)
    requests[lastNumber] = Request(target: target, device: device, deadline: deadline)
    expiryAt = expiryAt ?? deadline
    lines[target, default: Line()].waiting.append(lastNumber)
    routesAt = now
    return lastNumber
  }

  /// A reply has come; no other one follows the last.
  ///
  /// - Returns: Whether somebody waits for it.
  package mutating func answered(_ number: UInt64, isLast: Bool) -> Bool {
    guard let request = requests[number], request.receiver != nil else { return false }
    requests[number]?.isAnswered = true
    if isLast { requests[number] = nil }
    lines[request.target]?.refuser = nil
    if !request.isAnswered { executed(number, request) }
    return true
  }

  /// The receiver does not drive the device: the request goes again.
  package mutating func moved(_ number: UInt64, at now: Moment) {
    if let request = requests[number] { lines[request.target]?.refuser = request.receiver }
    undelivered([number], at: now)
  }

  /// Nobody has received a message with requests: they go again.
  package mutating func undelivered(_ numbers: [UInt64], at now: Moment) {
    for number in numbers {
      guard let request = requests[number], request.receiver != nil, !request.isAnswered else {
        continue
      }
      requests[number]?.receiver = nil
      lines[request.target, default: Line()].waiting.append(number)
      lines[request.target]?.waiting.sort()
      release(request.target)
      routeLater(at: now)
    }
  }

  /// Members or owners have changed.
  package mutating func ownersChanged() { haveOwnersChanged = true }

  // MARK: - Time

  /// Does everything that is due.
  ///
  /// - Parameters:
  ///   - now: The time.
  ///   - view: What this member knows of the others.
  ///   - isEngineReachable: Whether messages to other members can be sent.
  ///   - drives: Whether this member accepts changes of a partition's devices.
  package mutating func advance(
    to now: Moment,
    _ view: ClusterView,
    isEngineReachable: Bool,
    drives: (Partition) -> Bool
  ) {
    if haveOwnersChanged { failEnded(view) }
    if haveOwnersChanged || routesAt.map({ $0 <= now }) ?? false {
      haveOwnersChanged = false
      routesAt = nil
      let waiting = lines.compactMap { target, line in line.waiting.first.map { ($0, target) } }
      for (_, target) in waiting.sorted(by: { $0.0 < $1.0 }) {
        route(target, to: receiver(of: target, view, isEngineReachable, drives), at: now)
      }
    }
    if let expiryAt, expiryAt <= now { expire(at: now) }
  }

  private mutating func route(_ target: RequestTarget, to receiver: Receiver?, at now: Moment) {
    guard let receiver else { return routeLater(at: now) }
    while let line = lines[target], let number = line.waiting.first {
      // The answers of those in flight come first.
      let isPipelined = line.receiver == receiver && line.refuser != receiver
      if line.unanswered > 0, !isPipelined || number < line.newestSent { return }
      if let device = requests[number]?.device, number < line.newestExecuted[device] ?? 0 {
        fail(number, .overtaken)
        continue
      }
      lines[target]?.waiting.removeFirst()
      if receiver.member == member {
        requests[number] = nil
        effects.append(.perform(number))
      } else {
        lines[target]?.receiver = receiver
        lines[target]?.unanswered += 1
        lines[target]?.newestSent = number
        requests[number]?.receiver = receiver
        effects.append(.send(number, to: receiver.member))
      }
    }
    removeLineIfDone(target)
  }

  private mutating func routeLater(at now: Moment) {
    let moment = now.advanced(by: Self.retry)
    routesAt = min(routesAt ?? moment, moment)
  }

  /// Who a request goes to now; `nil` while nobody can have it.
  private func receiver(
    of target: RequestTarget,
    _ view: ClusterView,
    _ isEngineReachable: Bool,
    _ drives: (Partition) -> Bool
  ) -> Receiver? {
    let name: String
    switch target {
    case .owner(let partition):
      guard let owner = view.owner(of: partition) else { return nil }
      if owner == member {
        return drives(partition) ? Receiver(member: owner, incarnation: 0) : nil
      }
      name = owner
    case .member(let other): name = other
    }
    guard isEngineReachable else { return nil }
    return view.incarnation(of: name).map { Receiver(member: name, incarnation: $0) }
  }

  /// A request that someone had was executed, or may have been.
  private mutating func executed(_ number: UInt64, _ request: Request) {
    if let device = request.device {
      let newest = lines[request.target]?.newestExecuted[device] ?? 0
      lines[request.target]?.newestExecuted[device] = max(newest, number)
    }
    release(request.target)
  }

  /// One request fewer is without an answer.
  private mutating func release(_ target: RequestTarget) {
    guard var line = lines[target] else { return }
    line.unanswered -= 1
    lines[target] = line
    if line.unanswered == 0, !line.waiting.isEmpty { routesAt = .zero }
    removeLineIfDone(target)
  }

  private mutating func removeLineIfDone(_ target: RequestTarget) {
    guard let line = lines[target], line.waiting.isEmpty, line.unanswered == 0 else { return }
    lines[target] = nil
    if case .owner(let partition) = target { effects.append(.released(partition)) }
  }

  /// Ends the requests whose receiver has ended: whether it has acted on them is unknown.
  private mutating func failEnded(_ view: ClusterView) {
    for (number, request) in requests.sorted(by: { $0.key < $1.key }) {
      guard let receiver = request.receiver,
        view.incarnation(of: receiver.member) != receiver.incarnation
      else { continue }
      fail(number, .ended(member: receiver.member, hasAnswered: request.isAnswered))
    }
  }

  private mutating func expire(at now: Moment) {
    expiryAt = nil
    for (number, request) in requests.sorted(by: { $0.key < $1.key }) where !request.isAnswered {
      guard request.deadline <= now else {
        expiryAt = request.deadline
        return
      }
      fail(number, request.receiver == nil ? .noOwner : .silent)
    }
  }

  private mutating func fail(_ number: UInt64, _ failure: PassedFailure) {
    guard let request = requests.removeValue(forKey: number) else { return }
    effects.append(.fail(number, failure))
    if request.receiver == nil {
      lines[request.target]?.waiting.removeAll { $0 == number }
      removeLineIfDone(request.target)
    } else if !request.isAnswered {
      executed(number, request)
    }
  }
}
