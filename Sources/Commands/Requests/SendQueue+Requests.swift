// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// Requests for the states of devices: they have a lane when no command waits for it.
extension SendQueue {
  /// Asks for the state of a key; `isNeeded` states that a step waits for it.
  mutating func wantState(of key: KeyIndex, isNeeded: Bool = false) {
    guard isConnected, facts[key].canAsk else { return }
    requests.want(key, requests: Int(facts[key].requestCount))
    let device = facts[key].device
    guard isNeeded || canAnswer(device) else { return }
    requests.enqueue(device, lane: lanes.lane(ofDevice: device), isNeeded: isNeeded)
  }

  /// Whether a device is there to answer; one that is away or asleep is asked when it is back.
  private func canAnswer(_ device: Int) -> Bool {
    isDeviceOnline(device) && !registry.sleeps(device)
  }

  /// Asks for every state, because the connection is new; for none, because it ended.
  mutating func renewRequests(at now: Moment) {
    guard isConnected else {
      for lane in requests.disconnected() { lanes.endRequest(in: lane) }
      return
    }
    requests.connected(at: now)
    for key in facts.keys where facts[key].canAsk { wantState(of: key) }
  }

  /// Asks a device that came back for what it was not asked for; one that went away is not asked.
  ///
  /// `isAwake` states that a sleeping device has reported itself.
  mutating func wantStates(ofDevice device: Int, isAwake: Bool = false) {
    if isAwake || canAnswer(device) {
      guard isConnected, isDeviceOnline(device), hasWanted(device) else { return }
      requests.enqueue(device, lane: lanes.lane(ofDevice: device), isNeeded: isAwake)
    } else if !requests.isNeeded(device) {
      requests.dequeue(device)
    }
  }

  /// A device reported the state of a key.
  mutating func stateKnown(of key: KeyIndex) {
    guard facts[key].canAsk, !requests.isIdle || requests.wanted(key) > 0 else { return }
    requests.know(key)
    if !hasWanted(facts[key].device) { requests.dequeue(facts[key].device) }
    if let lane = requests.end(facts[key].device) { lanes.endRequest(in: lane) }
  }

  /// The next request that may be sent now; `nil` when there is none.
  mutating func nextRequest(at now: Moment) -> StateRequestMessage? {
    guard isConnected else { return nil }
    while let device = requests.next(at: now, where: { lanes.mayRequest(in: $0, at: now) }) {
      let isNeeded = requests.isNeeded(device)
      requests.dequeue(device)
      guard isNeeded || canAnswer(device),
        let message = StateRequestMessage(ofDevice: device, requests, in: registry)
      else { continue }
      for key in message.keys { requests.sent(key) }
      let lane = lanes.lane(ofDevice: device)
      if let patience = lanes.request(in: lane, at: now) {
        let end = now.advanced(by: patience)
        if let before = requests.begin(device, lane: lane, until: end) {
          lanes.endRequest(in: before)
        }
      }
      if hasWanted(device) { requests.enqueue(device, lane: lane, isNeeded: isNeeded) }
      return message
    }
    return nil
  }

  private func hasWanted(_ device: Int) -> Bool {
    registry.indices(ofDevice: device).contains { requests.wanted(KeyIndex($0)) > 0 }
  }

  /// When a request can be sent, or stops taking up room; `nil` when none waits for time.
  func nextRequestDeadline(after now: Moment) -> Moment? {
    guard isConnected, !requests.isIdle else { return nil }
    var earliest = requests.nextPresumption
    for lane in requests.lanes {
      guard let begin = requests.earliest(in: lane, after: now),
        let token = lanes.nextRequestToken(in: lane, after: now)
      else { continue }
      let moment = max(begin, token)
      if moment > now { earliest = Moment.earlier(earliest, moment) }
    }
    return earliest
  }

  /// Frees the room of requests that are presumed to get no answer.
  @inline(__always)
  mutating func endPresumedRequests(at now: Moment) {
    guard !requests.isIdle else { return }
    while let lane = requests.popPresumed(at: now) { lanes.endRequest(in: lane) }
  }
}
