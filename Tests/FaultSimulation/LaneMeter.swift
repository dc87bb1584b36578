// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// The commands of each lane: never more than its rate and burst, and no device waits for ever.
///
/// The order itself is that of flows, which the unit tests compare with a plain model.
///
/// Tokens are kept in nanoseconds of waiting, so that nothing is rounded twice.
struct LaneMeter {
  private struct Lane {
    /// Nanoseconds for one token; 0 without a limit.
    let interval: UInt64
    let capacity: UInt64
    var level: UInt64
    var measuredAt = Moment.zero
  }

  private var lanes: [Lane] = [Lane(interval: 0, capacity: 0, level: 0)]
  /// The lane of each device; 0 is the one without a limit.
  private(set) var laneOfDevice: [Int] = []
  var windows = WindowMeter()
  /// How many commands have left while a device waited for its turn.
  private var overtaken: [Int]
  /// How many may: at least every second place is of old flows, which take turns as their devices
  /// do, and a device moves to another flow only where it is nearer to its turn.
  private let patience: [Int]

  init(_ registry: Registry, _ limits: [String: LaneLimits]) {
    var names: [String: Int] = [:]
    for device in registry.devices {
      guard let name = device.lane, let limits = limits[name] else {
        laneOfDevice.append(0)
        continue
      }
      if names[name] == nil {
        names[name] = lanes.count
        if let window = limits.window { windows.setWindow(window.max, lane: lanes.count) }
        guard let limit = limits.rate else {
          laneOfDevice.append(lanes.count)
          lanes.append(Lane(interval: 0, capacity: 0, level: 0))
          continue
        }
        let interval = UInt64((1e9 / limit.perSecond).rounded(.up))
        let capacity = interval * UInt64(limit.burst)
        lanes.append(Lane(interval: interval, capacity: capacity, level: capacity))
      }
      laneOfDevice.append(names[name] ?? 0)
    }
    overtaken = Array(repeating: 0, count: registry.devices.count)
    let assigned = laneOfDevice
    patience = assigned.map { lane in
      let count = assigned.count { $0 == lane }
      return 2 * count * (count + 1)
    }
  }

  private func level(_ lane: Int, at now: Moment) -> UInt64 {
    let elapsed = now.nanoseconds - lanes[lane].measuredAt.nanoseconds
    return min(lanes[lane].capacity, lanes[lane].level + min(elapsed, lanes[lane].capacity))
  }

  /// When a command may be sent through the lane; `now` if at once.
  func nextToken(of lane: Int, after now: Moment) -> Moment {
    let level = level(lane, at: now)
    guard level < lanes[lane].interval else { return now }
    return Moment(nanoseconds: now.nanoseconds + lanes[lane].interval - level)
  }

  /// A device may have lost its place in its lane.
  mutating func interrupted(device: Int) { overtaken[device] = 0 }

  /// Records a request for a state, which the lane had a token for.
  mutating func requested(in lane: Int, at now: Moment) {
    lanes[lane].level = level(lane, at: now) - lanes[lane].interval
    lanes[lane].measuredAt = now
  }

  /// Records a sent command of `device` while those in `waiting` had commands that are not urgent;
  /// returns the violated rule, if any.
  mutating func left(
    device: Int,
    lane: Int,
    isUrgent: Bool,
    ignoresLimits: Bool,
    waiting: [Int],
    at now: Moment
  ) -> String? {
    let hasToken = nextToken(of: lane, after: now) <= now
    guard hasToken || ignoresLimits else { return "left faster than its lane allows" }
    if hasToken {
      lanes[lane].level = level(lane, at: now) - lanes[lane].interval
      lanes[lane].measuredAt = now
    }
    for other in overtaken.indices where laneOfDevice[other] == lane {
      guard waiting.contains(other), other != device else {
        interrupted(device: other)
        continue
      }
      guard !isUrgent else { continue }
      overtaken[other] += 1
      if overtaken[other] > patience[other] {
        return "left as number \(overtaken[other]) while device \(other) waited for its turn"
      }
    }
    return nil
  }
}
