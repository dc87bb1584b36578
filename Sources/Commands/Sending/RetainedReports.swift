// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What is not known yet of devices: on a new connection the broker sends what it retains of their
/// availability and states, and a device that was away reports again.
///
/// Until then what was known before may be wrong: whether a device is online, and what it has.
struct RetainedReports {
  /// How long the broker may take.
  static let patience = Duration.seconds(2)

  /// When they count as complete at the latest; `nil` once they are.
  private(set) var deadline: Moment?
  /// The availability sources that have reported since the connection was made, by device.
  private var sources: [Int: Set<Int>] = [:]
  /// The keys that were reported since.
  private var keys: Set<KeyIndex> = []
  /// The keys whose devices were offline since they were reported.
  private var outdated: Set<KeyIndex> = []

  /// Whether some may be missing.
  var areMissing: Bool { deadline != nil }

  /// The connection was made.
  mutating func begin(at now: Moment) {
    end()
    deadline = now.advanced(by: Self.patience)
  }

  /// All have come, or none comes any more.
  mutating func end() {
    deadline = nil
    sources = [:]
    keys = []
  }

  /// The device of a key is offline: it may come back with another state.
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
    !areMissing || count == 0 || sources[device]?.count == count
  }

  /// Whether what the broker retains of a key's state is known.
  func knows(_ key: KeyIndex) -> Bool { !areMissing || keys.contains(key) }

  /// Whether the device of a key was offline since the key was reported.
  func isOutdated(_ key: KeyIndex) -> Bool { outdated.contains(key) }
}
