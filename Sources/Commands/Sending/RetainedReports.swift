// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What is not known yet of devices: on a new connection the broker sends what it retains of their
/// availability and states, and a device that was away reports again.
///
/// Until then what was known before may be wrong: whether a device is online, and what it has. A
/// cluster has a connection for some of the devices each.
struct RetainedReports {
  /// How long the broker may take.
  static let patience = Duration.seconds(2)

  /// When the first of them count as complete at the latest; `nil` once all are.
  private(set) var deadline: Moment?
  /// When those of all devices do.
  private var end: Moment?
  /// When those of devices do that have a connection of their own.
  private var ends: [Int: Moment] = [:]
  /// The availability sources that have reported since the connection was made, by device.
  private var sources: [Int: Set<Int>] = [:]
  /// The keys that were reported since.
  private var keys: Set<KeyIndex> = []
  /// The keys that may have changed since they were reported: their devices were offline, or were
  /// told to stop or move.
  private var outdated: Set<KeyIndex> = []

  /// Whether some may be missing.
  var areMissing: Bool { deadline != nil }

  /// Whether some of a device may be missing.
  func areMissing(of device: Int) -> Bool { end != nil || ends[device] != nil }

  /// The connection was made.
  mutating func begin(at now: Moment) {
    forgetHeard()
    end = now.advanced(by: Self.patience)
    deadline = Moment.earlier(end, ends.values.min())
  }

  /// The connection of some devices was made, which have these keys.
  mutating func begin(_ devices: [Int], _ keys: some Sequence<KeyIndex>, at now: Moment) {
    for device in devices {
      ends[device] = now.advanced(by: Self.patience)
      sources[device] = nil
    }
    self.keys.subtract(keys)
    deadline = Moment.earlier(end, ends.values.min())
  }

  /// Those of these devices have come, `nil` for all, or none comes any more.
  mutating func complete(_ devices: [Int]?) {
    if let devices {
      for device in devices { ends[device] = nil }
    } else {
      end = nil
    }
    deadline = Moment.earlier(end, ends.values.min())
    if deadline == nil { forgetHeard() }
  }

  private mutating func forgetHeard() {
    sources = [:]
    keys = []
  }

  /// Waits no longer for what takes too long.
  mutating func giveUp(at now: Moment) {
    if let end, end <= now { complete(nil) }
    complete(ends.filter { $0.value <= now }.map(\.key))
  }

  /// A key may change before its next report: its device is offline, or is told to stop or move.
  mutating func outdate(_ key: KeyIndex) { outdated.insert(key) }

  /// One of a device's availability sources has reported.
  mutating func heard(_ source: Int, of device: Int) {
    if areMissing, source >= 0 { sources[device, default: []].insert(source) }
  }

  /// A key was reported.
  ///
  /// What the broker retains of a device that it says `isOffline` is from before.
  mutating func heard(_ key: KeyIndex, of device: Int, isOffline: Bool) {
    if areMissing { keys.insert(key) }
    if !(isOffline && sources[device] != nil) { outdated.remove(key) }
  }

  /// Whether the availability of a device is known, which has this number of sources.
  func knows(_ device: Int, sources count: Int) -> Bool {
    !areMissing(of: device) || count == 0 || sources[device]?.count == count
  }

  /// Whether what the broker retains of the state of a device's key is known.
  func knows(_ key: KeyIndex, ofDevice device: Int) -> Bool {
    !areMissing(of: device) || keys.contains(key)
  }

  /// Whether a key may have changed since it was reported.
  func isOutdated(_ key: KeyIndex) -> Bool { outdated.contains(key) }
}
