// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
package import LastOut

/// The connection to the gateway: the requests to send and those without an answer.
package struct ScreenLink: Sendable {
  package enum State: Hashable, Sendable {
    case connecting
    /// Connected, without the list of properties.
    case reading
    case ready
    case lost(reason: String)
  }

  /// How often the values in view are read; a change at the device emits no event.
  private static let refreshInterval = Duration.seconds(1)
  /// How soon an event leads to a refresh.
  private static let refreshDelay = Duration.milliseconds(50)
  /// How long the gateway may take to answer before the screen shows that it is silent.
  private static let answerTimeout = Duration.seconds(3)
  private static let firstRetry = Duration.milliseconds(200)
  private static let slowestRetry = Duration.seconds(2)

  private(set) var state = State.connecting
  /// Why the gateway has no connection to its broker; `nil` while it has one, or does not say.
  private(set) var brokerTrouble: String?
  /// Whether the connected gateway has not answered for three seconds.
  private(set) var isSilent = false
  /// The prefix of the identifiers of changes.
  private let name: String
  /// Requests that are not sent yet.
  private var outbox: [ControlRequest] = []
  /// The number of the last change, which is part of its identifier.
  private var lastNumber = 0
  /// The keys of changes without an answer, by identifier.
  private var unansweredChanges: [String: String] = [:]
  /// When to connect again.
  private var retryAt = Moment.zero
  private var retries = 0
  /// When to read the values in view again.
  private var refreshAt: Moment?
  /// The number of reads without an answer.
  private var openReads = 0
  /// Since when there has been a read without an answer.
  private var readSince: Moment?
  /// Whether a request for the devices is without an answer.
  private var isDescribing = false

  init(name: String) { self.name = name }

  // MARK: - The connection

  /// Whether a connection attempt is due.
  package func shouldConnect(at now: Moment) -> Bool {
    switch state {
    case .connecting, .lost: now >= retryAt
    case .reading, .ready: false
    }
  }

  /// Handles a new connection: requests the devices, their values and all events.
  mutating func connected(at now: Moment) {
    state = .reading
    retries = 0
    isSilent = false
    isDescribing = false
    brokerTrouble = nil
    unansweredChanges = [:]
    openReads = 0
    readSince = nil
    outbox = []
    request(.describe, "*", RequestID.describe, at: now)
    request(.watch, "*", RequestID.watch, at: now)
    request(.get, "*", RequestID.get, at: now)
    request(.pending, "*", RequestID.pending, at: now)
    request(.status, "", RequestID.status, at: now)
  }

  /// Handles a failed or lost connection; the next attempt waits 200 ms to 2 s.
  mutating func disconnected(_ reason: String, at now: Moment) {
    state = .lost(reason: reason)
    let wait = min(Self.slowestRetry, Self.firstRetry * (1 << min(retries, 4)))
    retries += 1
    retryAt = now.advanced(by: wait)
    refreshAt = nil
    unansweredChanges = [:]
    outbox = []
  }

  // MARK: - Requests

  /// Removes and returns the requests to send, in order.
  mutating func dequeueRequests() -> [ControlRequest] {
    defer { outbox = [] }
    return outbox
  }

  /// Requests a change of one property.
  mutating func requestChange(_ operation: ControlRequest.Operation, of key: String) {
    lastNumber += 1
    var request = ControlRequest(operation, key: key)
    let id = "\(name)-\(lastNumber)"
    request.id = id
    request.source = "control"
    unansweredChanges[id] = key
    outbox.append(request)
  }

  /// Requests a flush or a cancellation.
  mutating func requestRemoval(_ operation: ControlRequest.Operation, of pattern: String) {
    var request = ControlRequest(operation, key: pattern)
    request.id = operation == .flush ? RequestID.flush : RequestID.cancel
    outbox.append(request)
  }

  /// Requests the devices again, after an unknown key shows that the gateway reloaded them.
  mutating func requestDescription(at now: Moment) {
    guard state == .ready, !isDescribing else { return }
    isDescribing = true
    request(.describe, "*", RequestID.describe, at: now)
  }

  /// Requests values, the devices, or their events.
  mutating func request(
    _ operation: ControlRequest.Operation,
    _ pattern: String,
    _ id: String,
    at now: Moment
  ) {
    var request = ControlRequest(operation, key: pattern)
    request.id = id
    outbox.append(request)
    guard operation != .watch, operation != .status else { return }
    openReads += 1
    readSince = readSince ?? now
  }

  // MARK: - Answers

  /// Records that the gateway has sent something.
  mutating func answered() { isSilent = false }

  /// Records the state of the gateway's own broker; returns whether it is news.
  mutating func heard(_ broker: StatusReport.Broker?) -> Bool {
    var trouble: String?
    if let broker, !broker.isConnected {
      trouble = broker.url + ": " + (broker.reason ?? "not connected")
    }
    defer { brokerTrouble = trouble }
    return (trouble == nil) != (brokerTrouble == nil)
  }

  /// Whether the identifier is that of a change from this screen.
  func isOwn(_ id: String) -> Bool { id.hasPrefix("\(name)-") }

  /// Removes an answered change; returns its key, or `nil` if the identifier is of no change.
  mutating func endChange(_ id: String) -> String? { unansweredChanges.removeValue(forKey: id) }

  mutating func endRead() {
    openReads = max(0, openReads - 1)
    if openReads == 0 { readSince = nil }
  }

  /// Handles the description of the devices, after which changes are possible.
  mutating func described(at now: Moment) {
    endRead()
    isDescribing = false
    if state == .reading { state = .ready }
    refreshAt = refreshAt ?? now.advanced(by: Self.refreshInterval)
  }

  // MARK: - Time

  /// Handles the passage of time; returns whether the values in view must be read.
  mutating func advance(to now: Moment) -> Bool {
    if let readSince, readSince.duration(to: now) >= Self.answerTimeout { isSilent = true }
    guard state == .ready, let refreshAt, now >= refreshAt else { return false }
    self.refreshAt = now.advanced(by: Self.refreshInterval)
    // Reads do not accumulate while the gateway is slow.
    return openReads == 0
  }

  /// When the link needs the next tick.
  func nextTick(after now: Moment) -> Moment? {
    switch state {
    case .connecting, .lost: retryAt
    case .reading: now.advanced(by: Self.refreshInterval)
    case .ready: refreshAt
    }
  }

  /// Reads the values in view soon.
  mutating func refreshSoon(at now: Moment) {
    guard let refreshAt else { return }
    self.refreshAt = min(refreshAt, now.advanced(by: Self.refreshDelay))
  }
}

/// The identifiers of requests other than changes.
enum RequestID {
  static let describe = "describe"
  static let watch = "watch"
  static let get = "get"
  static let pending = "pending"
  static let status = "status"
  static let flush = "flush"
  static let cancel = "cancel"
}
