// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut

/// Requests for the states of devices: which must be sent, and when they may be.
struct RequestModel {
  /// Keys whose state must be asked for.
  var wanted: [Bool]
  /// Devices whose state a step waits for.
  var needed: Set<Int> = []
  /// When the others are asked at the earliest.
  var beginsAt = Moment.zero

  init(keys: Int) { wanted = Array(repeating: false, count: keys) }
}

extension Model {
  /// A new connection asks for everything, and the end of one for nothing.
  mutating func renewRequests(at now: Moment) {
    requests.beginsAt = now.advanced(by: .milliseconds(500))
    requests.needed = []
    if !isConnected { lanes.windows.requestsEnded() }
    for place in places {
      requests.wanted[place] = isConnected && keys[place].property.state?.get != nil
    }
  }

  /// A step waits for the state of a key.
  mutating func needState(_ place: Int) {
    requests.wanted[place] = true
    requests.needed.insert(keys[place].device)
  }

  /// The device has reported a key.
  mutating func stateKnown(_ place: Int) {
    requests.wanted[place] = false
    forgetNeed(keys[place].device)
    if keys[place].property.state?.get != nil {
      lanes.windows.ended(.device(keys[place].device))
    }
  }

  private mutating func forgetNeed(_ device: Int) {
    if wantedPlaces(ofDevice: device).isEmpty { requests.needed.remove(device) }
  }

  private func wantedPlaces(ofDevice device: Int) -> [Int] {
    places.filter { keys[$0].device == device && requests.wanted[$0] }
  }

  /// When a device may be asked, as far as the time goes; `nil` while it may not be asked at all.
  private func askableAt(_ device: Int, after now: Moment) -> Moment? {
    guard isConnected, !isClosing, let first = wantedPlaces(ofDevice: device).first else {
      return nil
    }
    let isNeeded = requests.needed.contains(device)
    guard isNeeded || devices[device].isOnline else { return nil }
    let lane = keys[first].lane
    guard !places.contains(where: { keys[$0].lane == lane && isInLane($0) }) else { return nil }
    guard lanes.windows.hasRoomForRequest(in: lane) else { return nil }
    let token = lanes.nextToken(of: lane, after: now)
    return isNeeded ? token : max(token, requests.beginsAt)
  }

  /// Checks and records a request; returns what is wrong with it, if anything.
  mutating func asked(_ request: StateRequestMessage, at now: Moment) -> String? {
    let device = request.device
    guard let at = askableAt(device, after: now), at <= now else {
      return "is asked for its state, and may not be"
    }
    let wanted = wantedPlaces(ofDevice: device)
    let topic = keys[wanted[0]].property.state?.get?.topic
    let merged = wanted.filter { keys[$0].property.state?.get?.topic == topic }
    guard request.topic == topic, request.keys == merged.map({ KeyIndex(Int32($0)) }) else {
      return "is asked for \(request.keys.map(\.rawValue)), not \(merged)"
    }
    for place in merged { requests.wanted[place] = false }
    forgetNeed(device)
    lanes.requested(in: keys[wanted[0]].lane, at: now)
    lanes.windows.sent(.device(device), lane: keys[wanted[0]].lane, at: now)
    return nil
  }

  /// A device that could be asked now and is not, if any.
  func requestKeptBack(at now: Moment) -> String? {
    for device in devices.indices {
      if let at = askableAt(device, after: now), at <= now {
        return "device \(device) may be asked for its state and is not"
      }
    }
    return nil
  }

  /// The moments at which devices may be asked; none of a lane in which one may be asked by now.
  func requestDeadlines(after now: Moment) -> [Moment] {
    var ready: Set<Int> = []
    var later: [(lane: Int, at: Moment)] = []
    for device in devices.indices {
      guard let at = askableAt(device, after: now) else { continue }
      let lane = lanes.laneOfDevice[device]
      if at <= now { ready.insert(lane) } else { later.append((lane, at)) }
    }
    return later.filter { !ready.contains($0.lane) }.map(\.at)
  }
}
