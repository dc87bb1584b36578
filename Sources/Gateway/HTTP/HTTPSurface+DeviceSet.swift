// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import HTTP
import JSON
import Operations
import Values

/// Several properties of a device in one request.
extension HTTPSurface {
  /// The newest event of each property, in the order in which they were first heard.
  private final class Outcome {
    var events: [EventObject] = []

    func record(_ event: EventObject) {
      if let place = events.firstIndex(where: { $0.key == event.key }) {
        events[place] = event
      } else {
        events.append(event)
      }
    }
  }

  /// Sets properties of a device, and responds when all of them are as far as the client waits for.
  func setDevice(_ id: String, _ exchange: HTTPExchange) throws(Problem) {
    try setSeveral(try ChangeBody.deviceRequest(id, from: exchange.request), exchange)
  }

  /// Sets a scene, and responds as for several properties of a device.
  func setScene(_ id: String, _ exchange: HTTPExchange) throws(Problem) {
    let request = try ChangeBody.sceneRequest(id, from: exchange.request)
    do throws(ValidationError) {
      _ = try context.registry.scene(id)
    } catch {
      throw HTTPProblems.problem(gateway.requests.suggesting(error, at: EventLoop.now()), key: nil)
    }
    try setSeveral(request, exchange)
  }

  private func setSeveral(
    _ request: ControlRequest,
    _ exchange: HTTPExchange
  ) throws(Problem) {
    var request = request
    request.source = request.source ?? Self.source
    let wait = request.wait
    if wait != nil { try checkRoomToLast(asStream: false) }
    let outcome = Outcome()
    perform(request, exchange, wait: wait) { reply in
      if case .event(let event, _) = reply { outcome.record(event) }
    } onEnd: { [weak self] exchange, reply, change in
      switch reply {
      case .event: self?.answer(exchange, outcome.events, isAccepted: wait == nil, to: change)
      case .failure(let failure, _): self?.refuse(exchange, HTTPProblems.problem(failure))
      case .targets, .pending, .described, .flushed, .cancelled, .watched, .recorded, .reloaded,
        .status, .logged, .devices, .words, .previewed:
        preconditionFailure("A change is answered with events.")
      }
    }
  }

  private func answer(
    _ exchange: HTTPExchange,
    _ events: [EventObject],
    isAccepted: Bool,
    to change: HTTPChange
  ) {
    let list = JSONValue.Member("events", .array(events.map(\.json)))
    guard let bad = events.first(where: \.endedBadly) else {
      return answer(exchange, .object([list]), status: isAccepted ? 202 : 200)
    }
    var problem = HTTPProblems.problem(bad, rejection: change.rejection)
    if events.count > 1 { problem.members.append(list) }
    refuse(exchange, problem)
  }
}

extension EventObject {
  /// Whether the change ended without being sent, confirmed or unnecessary.
  fileprivate var endedBadly: Bool {
    switch phase {
    case .accepted, .unchanged, .sending, .sent, .confirmed: false
    case .superseded, .cancelled, .rejected, .failed, .expired: true
    }
  }
}
