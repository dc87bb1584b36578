// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
internal import Devices
internal import Glibc
package import LastOut

/// Decides when a running gateway imports what is announced.
///
/// It keeps the newest message of each topic. An import begins once nothing new was announced for
/// the quiet time, and at the latest 60 s after the first new announcement. One runs at a time:
/// what is announced meanwhile waits for the next. A message that was announced before changes
/// nothing, so that a new connection, on which the broker sends everything again, has no import.
package struct AnnouncementFollower: Sendable {
  /// The limits of what is kept, which are those of `settle import`.
  package struct Limits: Sendable {
    package var messages = Collector.maximumMessages
    package var bytes = Collector.maximumBytes
    package init() {}
  }

  private enum State {
    /// Everything is imported.
    case idle
    /// Something is new: when that began, and when the last of it arrived.
    case waiting(since: Moment, last: Moment)
    /// An import runs; `next` is as in `waiting`, for what was announced meanwhile.
    case importing(next: (since: Moment, last: Moment)?)
  }

  /// The topics of announcements.
  package let filters: [String]
  private let quiet: Duration
  private let prefix: String
  private let limits: Limits
  private var state = State.idle
  private var announcements: [String: [UInt8]] = [:]
  private var bytes = 0
  /// The topics of Zigbee2MQTT's groups that were announced in this connection.
  private var heardGroups: Set<String> = []
  /// The topics of groups whose newest message no import has known, and those whose import runs.
  private var staleGroups: (waiting: Set<String>, importing: Set<String>) = ([], [])
  /// Whether ``isKnown(group:)`` may have changed; the owner resets it.
  package var hasGroupNews = false
  /// Whether more was announced than is kept, so that nothing can be imported.
  package private(set) var isFull = false

  package init(
    _ settings: ImportConfiguration,
    request: ImportPlan.Request,
    limits: Limits = .init()
  ) {
    quiet = settings.quiet
    prefix = request.prefix + "/"
    filters = request.filters + request.bridgeFilters
    self.limits = limits
  }

  /// How many announcements are kept.
  package var count: Int { announcements.count }

  /// When the next import begins; `nil` while nothing is new, or an import runs.
  package var deadline: Moment? {
    guard case .waiting(let since, let last) = state, !isFull else { return nil }
    return min(
      last.advanced(by: quiet),
      since.advanced(by: ImportConfiguration.longestWait)
    )
  }

  // MARK: - Messages

  /// Receives a message, empty where an announcement was removed.
  ///
  /// - Returns: Whether it is an announcement. Messages on other topics cost a comparison of bytes.
  package mutating func receive(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    at now: Moment
  ) -> Bool {
    guard Self.mayAnnounce(topic) else { return false }
    let name = unsafe topic.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    guard filters.contains(where: { Topic.matches(filter: $0, name: name) }) else { return false }
    let known = announcements[name]
    let hasGroups = name.hasSuffix(Self.groupsTopic)
    if hasGroups {
      heardGroups.insert(name)
      hasGroupNews = true
    }
    if known.map({ Self.areEqual(payload, $0) }) ?? payload.isEmpty { return true }
    if name.hasPrefix(prefix), Self.isOwn(payload) { return true }
    keep(payload, of: name, replacing: known)
    if hasGroups { staleGroups.waiting.insert(name) }
    changed(at: now)
    return true
  }

  /// Whether the Zigbee2MQTT that has a group's topic has announced its groups in this connection,
  /// as the newest import knew them.
  ///
  /// Of several whose base topics begin the topic, all.
  package func isKnown(group topic: String) -> Bool {
    let stale = staleGroups.waiting.union(staleGroups.importing)
    let lists = heardGroups.union(stale).union(announcements.keys).filter {
      $0.hasSuffix(Self.groupsTopic)
        && topic.hasPrefix($0.dropLast(Self.groupsTopic.count) + "/")
    }
    return !lists.isEmpty && lists.isSubset(of: heardGroups) && lists.isDisjoint(with: stale)
  }

  /// The connection ended: groups may change before they are announced again.
  package mutating func connectionEnded() { heardGroups = [] }

  private mutating func keep(_ payload: Span<UInt8>, of name: String, replacing known: [UInt8]?) {
    bytes -= known.map { $0.count + name.utf8.count } ?? 0
    announcements[name] = nil
    guard !payload.isEmpty else { return }
    let size = payload.count + name.utf8.count
    guard announcements.count < limits.messages, bytes + size <= limits.bytes else {
      isFull = true
      return
    }
    bytes += size
    announcements[name] = unsafe payload.withUnsafeBufferPointer { unsafe Array($0) }
  }

  /// The files were read again for another reason: what they leave out may be imported now.
  package mutating func filesChanged(at now: Moment) {
    if !announcements.isEmpty { changed(at: now) }
  }

  private mutating func changed(at now: Moment) {
    switch state {
    case .idle: state = .waiting(since: now, last: now)
    case .waiting(let since, _): state = .waiting(since: since, last: now)
    case .importing(let next): state = .importing(next: (next?.since ?? now, now))
    }
  }

  // MARK: - Imports

  /// Begins an import if one is due; ``finish()`` ends it.
  ///
  /// - Returns: Everything that is announced, by topic; copied in constant time.
  package mutating func begin(at now: Moment) -> [String: [UInt8]]? {
    guard let deadline, deadline <= now else { return nil }
    state = .importing(next: nil)
    staleGroups = ([], staleGroups.waiting)
    return announcements
  }

  /// The import that ran has ended.
  package mutating func finish() {
    guard case .importing(let next) = state else {
      preconditionFailure("An import ends only once it has begun.")
    }
    staleGroups.importing = []
    state = next.map { .waiting(since: $0.since, last: $0.last) } ?? .idle
  }

  // MARK: - Bytes

  /// The last levels of the topics of announcements.
  private static let endings = ["/devices", "/groups", "/config", "/sensors", "/$description"].map {
    Array($0.utf8)
  }

  /// The end of the topic that has the groups of a Zigbee2MQTT.
  private static let groupsTopic = "/bridge/groups"

  private static func mayAnnounce(_ topic: Span<UInt8>) -> Bool {
    endings.contains { ending in
      let start = topic.count - ending.count
      guard start > 0 else { return false }
      for place in ending.indices.reversed() where topic[start + place] != ending[place] {
        return false
      }
      return true
    }
  }

  /// How announcements of this program name their origin, near their beginning.
  private static let ownOrigin = Array(#""o":{"name":"Settle""#.utf8)
  private static let longestBeginning = 64 << 10

  /// Whether a gateway has announced it; it is not parsed, because it may be large.
  private static func isOwn(_ payload: Span<UInt8>) -> Bool {
    let end = min(payload.count, longestBeginning) - ownOrigin.count
    guard end >= 0 else { return false }
    for start in 0...end where payload[start] == ownOrigin[0] {
      var length = 1
      while length < ownOrigin.count, payload[start + length] == ownOrigin[length] { length += 1 }
      if length == ownOrigin.count { return true }
    }
    return false
  }

  private static func areEqual(_ payload: Span<UInt8>, _ bytes: [UInt8]) -> Bool {
    guard payload.count == bytes.count else { return false }
    return unsafe payload.withUnsafeBytes { payload in
      unsafe bytes.withUnsafeBytes { bytes in
        guard let left = payload.baseAddress, let right = bytes.baseAddress else { return true }
        return unsafe memcmp(left, right, payload.count) == 0
      }
    }
  }
}
