// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations
import Synchronization

/// Connection attempts, the ends of connections, and the waits between attempts.
extension MQTTClient {
  /// How long disconnecting may take.
  private static let closePatience: Duration = .milliseconds(500)
  /// The time without a loss after which probing for poison topics ends.
  static let provingTime: Duration = .seconds(5)
  /// The maximum number of connecting threads in the process, including abandoned ones.
  private static let mostThreads = 8

  func startAttempt() {
    guard ConnectThread.running.load(ordering: .relaxed) < Self.mostThreads else {
      // Earlier attempts are still blocked.
      let delay = configuration.backoff.upperBound
      phase = .waiting(until: EventLoop.now().advanced(by: delay))
      logWait("\(Self.mostThreads) earlier connection attempts are still blocked", delay)
      return
    }
    statistics.attempts += 1
    let deadline = EventLoop.now().advanced(by: configuration.connectDeadline)
    phase = .starting(ConnectThread(configuration: configuration, waker: waker), deadline: deadline)
    change(to: .connecting)
  }

  /// Handles the result of the connecting thread.
  func receiveConnection() {
    guard case .starting(let thread, let deadline) = phase, let result = thread.result() else {
      return
    }
    switch result {
    case .failure(let problem): wait(for: problem)
    case .connection(let connection):
      guard let socket = connection.handle.socket else {
        wait(for: ConnectionProblem(.unreachable, "the connection was closed at once"))
        return
      }
      connection.client = self
      self.connection = connection
      descriptor = socket
      unfinished = UnfinishedPacket()
      do {
        watch = try loop.watch(socket, for: [.read, .write], named: "MQTT") { [unowned self] came in
          work { $0.serve(came) }
        }
      } catch {
        dropConnection()
        wait(for: ConnectionProblem(.unreachable, "\(error)"))
        return
      }
      phase = .handshaking(deadline: deadline)
    }
  }

  /// Handles an accepted connection.
  func becomeConnected(_ connack: Connection.Connack) {
    let now = EventLoop.now()
    statistics.connections += 1
    phase = .connected(since: now, keepAliveAt: keepAliveInterval.map(now.advanced(by:)))
    window.limit = max(1, min(configuration.window, connack.receiveMaximum ?? .max))
    // Under TLS OpenSSL may report an error at any time.
    if !configuration.isEncrypted { connection?.handle.endLog() }
    sendSubscriptions(subscriptions.all)
    loggedCause = nil
    retryPace.end()
    log.info(
      "Connected to the broker",
      ["broker": "\(configuration.endpoint)", "session": connack.sessionPresent ? "kept" : "new"]
    )
    change(to: .connected(sessionPresent: connack.sessionPresent))
  }

  /// Closes the connection, reports publishes in flight as lost, and waits before the next attempt.
  ///
  /// Must not be called inside a call into the library.
  func end(_ problem: ConnectionProblem) {
    let now = EventLoop.now()
    var problem = problem
    if case .connected(let since, _) = phase {
      statistics.losses += 1
      let life = since.duration(to: now)
      backoff.lost(after: life)
      let isIdle = window.entries.isEmpty && problem.kind == .dropped
      if clientIDConflict.isLikely(afterLife: life, wasIdle: isIdle, at: now) {
        problem = ConnectionProblem(
          .takenOver,
          "\(problem.reason), repeatedly after connecting:"
            + " another client seems to use the client id \(configuration.clientID)"
        )
      }
    }
    dropConnection()
    let (lost, quarantined) = window.connectionEnded(byPeer: problem.kind == .dropped)
    if let quarantined {
      log.error(
        "Topic quarantined: the broker drops the connection for it",
        ["topic": quarantined]
      )
    }
    wait(for: problem)
    report(lost, quarantined: quarantined)
  }

  /// Schedules the next attempt.
  func wait(for problem: ConnectionProblem) {
    let delay = backoff.delay(
      jitter: .random(in: 0..<1),
      isSlow: problem.callsForSlowRetry
    )
    let until = EventLoop.now().advanced(by: delay)
    phase = .waiting(until: until)
    logWait(problem.reason, delay)
    change(to: .waiting(until: until, reason: problem.reason))
  }

  /// Logs why there is no connection and when the next attempt follows: a new cause at once, a
  /// repeated one less and less often.
  private func logWait(_ reason: String, _ delay: Duration) {
    let wait = "\(Self.tenths(delay)) s"
    if loggedCause != reason {
      loggedCause = reason
      retryPace.end()
      _ = retryPace.record(at: EventLoop.now())
      log.warning(
        "No connection to the broker",
        ["broker": "\(configuration.endpoint)", "reason": reason, "trying_again_in": wait]
      )
    } else if let attempts = retryPace.record(at: EventLoop.now()) {
      log.info(
        "Still no connection to the broker",
        [
          "broker": "\(configuration.endpoint)", "reason": reason, "attempts": String(attempts),
          "trying_again_in": wait,
        ]
      )
    }
  }

  /// Seconds with one decimal.
  static func tenths(_ duration: Duration) -> String {
    let tenths = Int(((duration / .milliseconds(100)) as Double).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }

  func beginClose() {
    switch phase {
    case .idle, .closing: return
    case .starting(let thread, _):
      thread.abandon()
      finishClose()
    case .waiting, .handshaking:
      finishClose()
    case .connected:
      phase = .closing(deadline: EventLoop.now().advanced(by: Self.closePatience))
      writeOut()
      do {
        try connection?.handle.disconnect()
      } catch {
        finishClose()
        return
      }
      writeOut()
    }
  }

  func finishClose() {
    dropConnection()
    phase = .idle
    let (lost, _) = window.connectionEnded(byPeer: false)
    change(to: .idle)
    report(lost, quarantined: nil)
  }

  /// Cancels the watch, then destroys the handle, which closes its socket.
  func dropConnection() {
    watch?.cancel()
    watch = nil
    descriptor = -1
    connection?.client = nil
    connection = nil
    hasUnsent = false
    subscribing = [:]
    wasReady = false
    pendingEnd = nil
  }

  private func report(_ lost: [PublishWindow.Entry], quarantined: String?) {
    for entry in lost {
      let isQuarantined = entry.topic == quarantined
      onOutcome?(
        entry.token,
        isQuarantined
          ? .refused(reason: "quarantined: the broker drops the connection for it") : .lost
      )
    }
  }

  private func change(to state: State) {
    self.state = state
    onState?(state)
  }

  /// The interval of keep-alive checks; `nil` without keep-alive.
  private var keepAliveInterval: Duration? {
    guard configuration.keepalive > .zero else { return nil }
    return max(.seconds(1), configuration.keepalive / 4)
  }

  /// Checks the deadlines of the current phase.
  func checkDeadlines() {
    let now = EventLoop.now()
    switch phase {
    case .idle: break
    case .starting(let thread, let deadline):
      guard deadline <= now else { return }
      thread.abandon()
      wait(for: ConnectionProblem(.silent, "no connection within \(configuration.connectDeadline)"))
    case .handshaking(let deadline):
      guard deadline <= now else { return }
      pendingEnd = ConnectionProblem(
        .silent,
        "no answer to CONNECT within \(configuration.connectDeadline)"
      )
    case .connected(let since, let keepAliveAt):
      checkAcknowledgements(at: now)
      if since.advanced(by: Self.provingTime) <= now { window.connectionProvedStable() }
      guard pendingEnd == nil, let keepAliveAt, keepAliveAt <= now else { return }
      phase = .connected(since: since, keepAliveAt: keepAliveInterval.map(now.advanced(by:)))
      call { (handle) throws(MosquittoError) in try handle.keepAlive() }
    case .closing(let deadline):
      if deadline <= now { finishClose() }
    case .waiting(let until):
      if until <= now { startAttempt() }
    }
  }

  private func checkAcknowledgements(at now: Moment) {
    guard isOverdue(at: now) else { return }
    // This process may have been suspended: first read what has arrived meanwhile.
    serve(.read)
    guard pendingEnd == nil, isOverdue(at: now) else { return }
    pendingEnd = ConnectionProblem(
      .silent,
      "no acknowledgement within \(configuration.acknowledgementDeadline)"
    )
  }

  private func isOverdue(at now: Moment) -> Bool {
    guard let oldest = window.oldest else { return false }
    return oldest.advanced(by: configuration.acknowledgementDeadline) <= now
  }

  /// Sets the timer to the next deadline of the current phase.
  func rearm() {
    timer?.arm(at: needsAttention ? .zero : nextDeadline)
  }

  private var nextDeadline: Moment? {
    switch phase {
    case .idle: return nil
    case .starting(_, let deadline), .handshaking(let deadline), .closing(let deadline):
      return deadline
    case .waiting(let until): return until
    case .connected(let since, let keepAliveAt):
      var next = keepAliveAt
      if let oldest = window.oldest {
        let due = oldest.advanced(by: configuration.acknowledgementDeadline)
        next = min(next ?? due, due)
      }
      if window.poisonTopics.isProbing {
        let proved = since.advanced(by: Self.provingTime)
        next = min(next ?? proved, proved)
      }
      return next
    }
  }
}
