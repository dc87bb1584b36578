// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Configuration
import Control
import GatewayCore
import LastOut
import Operations

/// Requests about devices that other members of a cluster drive, with their senders: performs what
/// ``PassedRequests`` decides.
final class RequestForwarder {
  private struct Passed {
    let request: ControlRequest
    let requester: any Requester

    /// No further reply comes.
    func end() {
      requester.hasReplied()
      if request.wait != nil { requester.endWait() }
    }
  }

  private let context: GatewayContext
  private let peers: PeerLink
  private var decisions: PassedRequests
  private var passed: [UInt64: Passed] = [:]
  /// Executes a request here, because this member drives the device now.
  var onOwn: ((ControlRequest, any Requester) -> Void)?

  init(_ context: GatewayContext, peers: PeerLink, member: String) {
    self.context = context
    self.peers = peers
    decisions = PassedRequests(member: member, after: .random(in: 0..<1 << 48))
  }

  /// How many requests wait for a reply.
  var count: Int { decisions.count }

  /// Whether a request about a partition must wait behind earlier ones, although this member drives
  /// it.
  func isBusy(_ partition: Partition) -> Bool { decisions.isBusy(partition) }

  /// Passes a request on; the requester gets the replies.
  func pass(
    _ request: ControlRequest,
    to target: RequestTarget,
    for requester: any Requester,
    at now: Moment
  ) {
    requester.owesReply()
    if request.wait != nil { requester.beginWait() }
    let passing = Passed(request: request, requester: requester)
    guard peers.canCarry(request.line) else {
      let message = "\(request.key) belongs to another gateway, and the change is too long for it"
      requester.send(.failure(ErrorReply(.limit, message), id: request.replyID))
      return passing.end()
    }
    let number = decisions.pass(
      to: target,
      about: request.device(in: context.registry),
      limit: context.configuration.limits.pending,
      at: now
    )
    guard let number else {
      let message = "\(count) requests wait for other gateways, which is the limit"
      requester.send(.failure(ErrorReply(.limit, message), id: request.replyID))
      return passing.end()
    }
    passed[number] = passing
  }

  /// A reply has come.
  func receive(_ entry: PeerMessage.Entry) {
    let isLast = entry.flags.contains(.last)
    guard decisions.answered(entry.number, isLast: isLast), let request = passed[entry.number]
    else { return }
    if !entry.line.isEmpty {
      request.requester.pass(entry.line, isFinal: entry.flags.contains(.final))
    }
    if isLast { passed.removeValue(forKey: entry.number)?.end() }
  }

  /// The receiver does not drive the device.
  func moved(_ number: UInt64) { decisions.moved(number, at: EventLoop.now()) }

  /// Nobody has received a message with requests.
  func undelivered(_ numbers: [UInt64]) { decisions.undelivered(numbers, at: EventLoop.now()) }

  /// Members or owners have changed.
  func ownersChanged() { decisions.ownersChanged() }

  var nextDeadline: Moment? { decisions.nextDeadline }

  /// Does everything that is due.
  ///
  /// - Returns: Whether the core may have something new to do.
  func advance(to now: Moment, _ view: ClusterView, isEngineReachable: Bool) -> Bool {
    decisions.advance(to: now, view, isEngineReachable: isEngineReachable) {
      context.places?.drives($0) ?? false
    }
    let effects = decisions.dequeueEffects()
    for effect in effects { perform(effect) }
    return !effects.isEmpty
  }

  private func perform(_ effect: PassedEffect) {
    switch effect {
    case .send(let number, let other):
      guard let line = passed[number]?.request.line else { return }
      peers.append(.init(kind: .request, number: number, line: line), to: other)
    case .perform(let number):
      guard let request = passed.removeValue(forKey: number) else { return }
      onOwn?(request.request, request.requester)
      request.end()
    case .released(let partition):
      guard context.places?.drives(partition) ?? false else { return }
      for device in context.places?.devices(of: partition) ?? [] {
        context.core.setBehind(isBusy(partition), device: device)
      }
    case .fail(let number, let failure):
      guard let request = passed.removeValue(forKey: number) else { return }
      let error = Self.error(failure, request.request)
      request.requester.send(.failure(error, id: request.request.replyID))
      request.end()
    }
  }

  private static func error(_ failure: PassedFailure, _ request: ControlRequest) -> ErrorReply {
    switch failure {
    case .noOwner:
      ErrorReply(.noOwner, "no gateway of the cluster drives \(request.key) at the moment")
    case .overtaken:
      ErrorReply(
        .noOwner,
        "no gateway of the cluster drove \(request.key) in time, and a later change was executed"
      )
    case .ended(let member, hasAnswered: true):
      ErrorReply(
        .unanswered,
        "the gateway \(member) ended: what became of the change is not known here"
      )
    case .ended(let member, hasAnswered: false):
      ErrorReply(
        .unanswered,
        "the gateway \(member) ended before it answered: the change may or may not be accepted"
      )
    case .silent:
      ErrorReply(
        .unanswered,
        "the gateway that drives the device does not answer: the change may or may not be accepted"
      )
    }
  }
}
