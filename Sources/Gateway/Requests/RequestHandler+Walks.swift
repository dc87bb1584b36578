// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import GatewayCore
import LastOut
import Operations

/// Questions about many keys, answered in parts.
extension RequestHandler {
  /// Goes on with `walk` until `limit` units of work are used up, or to its end.
  ///
  /// Rows show the state at the time at which they are written.
  ///
  /// - Returns: The work that was done; see ``TurnBudget``.
  func advance(_ walk: inout KeyWalk, limit: Int, to output: inout [UInt8]) -> Int {
    let now = EventLoop.now()
    var left = limit
    if !walk.hasBegun {
      walk.hasBegun = true
      walk.rows.begin(to: &output)
    }
    if walk.appendWords(of: context.registry, work: &left, to: &output) {
      if walk.isDone { walk.rows.end(to: &output) }
      return limit - left
    }
    if case .devices = walk.operation {
      while let number = walk.nextDevice(in: context.registry, work: &left) {
        walk.rows.append(row(ofDevice: number, at: now).json, to: &output)
        left -= TurnBudget.Cost.description
      }
    }
    while let key = walk.next(in: context.registry, work: &left) {
      switch walk.operation {
      case .get:
        walk.rows.append(TargetRow(key, in: context.core, at: now).json, to: &output)
        left -= TurnBudget.Cost.row
      case .pending:
        guard let status = pendingStatus(key, at: now, work: &left) else { continue }
        walk.rows.append(PendingRow(status, in: context.registry, at: now).json, to: &output)
        left -= TurnBudget.Cost.row
      case .log:
        for event in log(of: key, at: now) {
          walk.rows.append(event.json, to: &output)
          left -= TurnBudget.Cost.row
        }
      case .describe:
        walk.rows.append(PropertyRow(key, in: context.core).json, to: &output)
        left -= TurnBudget.Cost.description
      case .flush, .cancel, .set, .step, .toggle, .scene, .watch, .record, .reload, .status,
        .devices:
        preconditionFailure("Only questions about several keys are answered in parts.")
      }
    }
    if walk.isDone { walk.rows.end(to: &output) }
    return limit - left
  }

  /// What waits for `key`, and when it is sent.
  private func pendingStatus(
    _ key: KeyIndex,
    at now: Moment,
    work: inout Int
  ) -> PendingStatus? {
    guard var status = PendingStatus(of: key, in: context.core.commands.dispatcher) else {
      return nil
    }
    guard status.waits == .lane else { return status }
    if !forecast.isUsable(for: key, at: now) {
      let times = PendingStatus.sendTimes(in: context.core.commands.dispatcher, after: now)
      forecast = LaneForecast(times, at: now)
      work -= forecast.cost
    }
    status.due = forecast[key]
    return status
  }
}

/// When the values that wait in lanes are sent, as worked out at one time.
///
/// That takes time in proportion to all of them, so the parts of a reply share it, and so do
/// replies that are written soon after each other.
struct LaneForecast {
  private let times: [KeyIndex: Moment]
  private let at: Moment

  init(_ times: [KeyIndex: Moment] = [:], at: Moment = .zero) {
    self.times = times
    self.at = at
  }

  /// The work that it took; see ``TurnBudget``.
  var cost: Int { times.count * 2 }

  subscript(key: KeyIndex) -> Moment? { times[key] }

  /// Whether it is new enough: the more values wait, the longer it is used.
  func isUsable(for key: KeyIndex, at now: Moment) -> Bool {
    if at == now { return true }
    guard times[key] != nil else { return false }
    return at.duration(to: now) < .microseconds(10 * times.count)
  }
}
