// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import Configuration
import Control
import Devices
import JSON
import LastOut
import Operations
import Routing
import Values

/// Requests about devices that other members of a cluster drive.
///
/// A request goes to the owner once. Where nobody received it, or its receiver does not drive the
/// device, it goes to the owner of then. If the owner ends before it has answered, the sender is
/// told that the outcome is unknown: repeated, the value could follow a newer one. Requests about
/// one partition keep their order: while one has no answer, later ones go nowhere else.
final class PassedRequests {
  /// Where a request goes.
  enum Target: Hashable {
    /// The owner of a partition.
    case owner(Partition)
    case member(String)
  }

  private struct Passed {
    let target: Target
    let request: ControlRequest
    let requester: any Requester
    /// When it is given up if nobody has answered.
    let deadline: Moment
    /// Who has it, while no answer has come.
    var receiver: Receiver?
    var isAnswered = false
  }

  private struct Receiver: Hashable {
    let member: String
    let incarnation: UInt64
  }

  /// Requests of one target that no one has, and how many someone has without an answer.
  private struct Line {
    var waiting: [UInt64] = []
    var receiver: Receiver?
    var unanswered = 0
  }

  /// How long a request may take to its answer: less than a client waits.
  static let patience = Duration.seconds(8)
  /// The wait before a request that was refused goes again.
  private static let retry = Duration.milliseconds(30)

  private let context: GatewayContext
  private let peers: PeerLink
  private let member: String
  /// The member that the records name as the owner of a partition.
  var findOwner: (Partition) -> String? = { _ in nil }
  /// The incarnation of another member; `nil` while it is not there, or not to be reached.
  var findIncarnation: (String) -> UInt64? = { _ in nil }
  private var passed: [UInt64: Passed] = [:]
  private var lines: [Target: Line] = [:]
  private var lastNumber: UInt64 = 0
  private var retryAt: Moment?
  private var expiryAt: Moment?
  private var haveOwnersChanged = false
  /// The same, whether it can be reached or not.
  var findPresence: (String) -> UInt64? = { _ in nil }
  /// Executes a request here, because this member drives the device now.
  var onOwn: ((ControlRequest, any Requester) -> Void)?

  init(_ context: GatewayContext, peers: PeerLink, member: String) {
    self.context = context
    self.peers = peers
    self.member = member
  }

  /// How many requests have no answer.
  var count: Int { passed.count }

  /// Whether a request about a partition must wait behind earlier ones, although this member drives
  /// it.
  func isBusy(_ partition: Partition) -> Bool { lines[.owner(partition)] != nil }

  // MARK: - In

  /// Passes a request on; the requester gets the replies.
  func pass(
    _ request: ControlRequest,
    to target: Target,
    for requester: any Requester,
    at now: Moment
  ) {
    guard passed.count < context.configuration.limits.pending else {
      let message = "\(passed.count) requests wait for other gateways, which is the limit"
      return requester.send(.failure(ErrorReply(.limit, message), id: request.replyID))
    }
    lastNumber += 1
    requester.owesReply()
    if request.wait != nil { requester.beginWait() }
    let deadline = now.advanced(by: Self.patience)
    passed[lastNumber] = Passed(
      target: target,
      request: request,
      requester: requester,
      deadline: deadline
    )
    expiryAt = expiryAt ?? deadline
    lines[target, default: Line()].waiting.append(lastNumber)
    route(target, at: now)
  }

  /// A reply has come.
  func receive(_ entry: PeerMessage.Entry) {
    guard let request = passed[entry.number] else { return }
    answered(entry.number)
    if !entry.line.isEmpty {
      request.requester.pass(entry.line, isFinal: entry.flags.contains(.final))
    }
    if entry.flags.contains(.last) { end(entry.number) }
  }

  /// The receiver does not drive the device: the request goes again.
  func moved(_ number: UInt64) {
    guard let request = passed[number], !request.isAnswered else { return }
    sendAgain([number], at: EventLoop.now())
  }

  /// Nobody has received a message with requests.
  func undelivered(_ numbers: [UInt64]) {
    sendAgain(numbers.filter { passed[$0].map { !$0.isAnswered } ?? false }, at: EventLoop.now())
  }

  /// Members or owners have changed.
  func ownersChanged() { haveOwnersChanged = true }

  // MARK: - Time

  var nextDeadline: Moment? { Moment.earlier(retryAt, expiryAt) }

  func advance(to now: Moment) {
    if haveOwnersChanged { failUnanswered(at: now) }
    if haveOwnersChanged || retryAt.map({ $0 <= now }) ?? false {
      haveOwnersChanged = false
      retryAt = nil
      for (target, line) in lines where !line.waiting.isEmpty { route(target, at: now) }
    }
    if let expiryAt, expiryAt <= now { expire(at: now) }
  }

  // MARK: - Private

  private func route(_ target: Target, at now: Moment) {
    while let number = lines[target]?.waiting.first, let request = passed[number] {
      guard let receiver = receiver(of: target) else { return tryLater(at: now) }
      if let busy = lines[target]?.receiver, busy != receiver { return }  // Its answers come first.
      lines[target]?.waiting.removeFirst()
      if receiver.member == member {
        perform(number, request)
        continue
      }
      lines[target]?.receiver = receiver
      lines[target]?.unanswered += 1
      passed[number]?.receiver = receiver
      peers.append(
        .init(kind: .request, number: number, line: request.request.line),
        to: receiver.member
      )
    }
    removeLineIfDone(target)
  }

  private func tryLater(at now: Moment) {
    retryAt = min(retryAt ?? .max, now.advanced(by: Self.retry))
  }

  /// Who a request goes to now; `nil` while nobody can have it.
  private func receiver(of target: Target) -> Receiver? {
    let name: String
    switch target {
    case .owner(let partition):
      guard let owner = findOwner(partition) else { return nil }
      if owner == member, !(context.places?.drives(partition) ?? false) { return nil }
      name = owner
    case .member(let other): name = other
    }
    if name == member { return Receiver(member: name, incarnation: 0) }
    return findIncarnation(name).map { Receiver(member: name, incarnation: $0) }
  }

  /// Executes a request here.
  private func perform(_ number: UInt64, _ request: Passed) {
    passed[number] = nil
    onOwn?(request.request, request.requester)
    request.requester.hasReplied()
    if request.request.wait != nil { request.requester.endWait() }
  }

  private func answered(_ number: UInt64) {
    guard let request = passed[number], !request.isAnswered else { return }
    passed[number]?.isAnswered = true
    release(request.target)
  }

  /// One request fewer is without an answer.
  private func release(_ target: Target) {
    guard var line = lines[target] else { return }
    line.unanswered = max(0, line.unanswered - 1)
    if line.unanswered == 0 { line.receiver = nil }
    lines[target] = line
    if line.unanswered == 0, !line.waiting.isEmpty { haveOwnersChanged = true }
    removeLineIfDone(target)
  }

  private func removeLineIfDone(_ target: Target) {
    if let line = lines[target], line.waiting.isEmpty, line.unanswered == 0 { lines[target] = nil }
  }

  private func sendAgain(_ numbers: [UInt64], at now: Moment) {
    for number in numbers {
      guard let request = passed[number], request.receiver != nil else { continue }
      passed[number]?.receiver = nil
      lines[request.target, default: Line()].waiting.append(number)
      lines[request.target]?.waiting.sort()
      release(request.target)
    }
    if !numbers.isEmpty { tryLater(at: now) }
  }

  private func end(_ number: UInt64) {
    guard let request = passed.removeValue(forKey: number) else { return }
    if !request.isAnswered, request.receiver != nil { release(request.target) }
    request.requester.hasReplied()
    if request.request.wait != nil { request.requester.endWait() }
  }

  /// Ends the requests whose receiver has ended: whether it has acted on them is unknown.
  private func failUnanswered(at now: Moment) {
    for (number, request) in passed.sorted(by: { $0.key < $1.key }) {
      guard let receiver = request.receiver,
        findPresence(receiver.member) != receiver.incarnation
      else { continue }
      fail(number, request)
    }
  }

  private func fail(_ number: UInt64, _ request: Passed) {
    let gateway = request.receiver?.member ?? ""
    let message =
      request.isAnswered
      ? "the gateway \(gateway) ended: what became of the change is not known here"
      : "the gateway \(gateway) ended before it answered: the change may or may not be accepted"
    answer(request, ErrorReply(.unanswered, message))
    end(number)
  }

  private func answer(_ request: Passed, _ error: ErrorReply) {
    request.requester.send(.failure(error, id: request.request.replyID))
  }

  private func expire(at now: Moment) {
    expiryAt = nil
    for (number, request) in passed.sorted(by: { $0.key < $1.key }) where !request.isAnswered {
      guard request.deadline <= now else {
        expiryAt = min(expiryAt ?? .max, request.deadline)
        continue
      }
      if request.receiver == nil {
        lines[request.target]?.waiting.removeAll { $0 == number }
        let message = "no gateway of the cluster drives \(request.request.key) at the moment"
        answer(request, ErrorReply(.noOwner, message))
      } else {
        answer(
          request,
          ErrorReply(
            .unanswered,
            "the gateway that drives the device does not answer: the change may or may not be accepted"
          )
        )
      }
      end(number)
      removeLineIfDone(request.target)
    }
  }
}

extension Moment {
  fileprivate static var max: Moment { Moment(nanoseconds: .max) }
}
