// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Devices
import Glibc
import LastOut
import Operations

/// Connection attempts, the ends of connections, and the waits between attempts.
extension MQTTClient {
  /// How long disconnecting may take.
  private static let closePatience: Duration = .milliseconds(500)

  func startAttempt() {
    guard ConnectThread.hasRoom else {
      // Earlier attempts are still blocked.
      let (now, delay) = (EventLoop.now(), configuration.backoff.upperBound)
      phase = .waiting(until: now.advanced(by: delay))
      let reason = "\(ConnectThread.mostThreads) earlier connection attempts are still blocked"
      reconnection.logWait(reason, delay, at: now)
      return
    }
    statistics.attempts += 1
    round.begin([configuration.endpoint] + configuration.alternatives)
    let deadline = EventLoop.now().advanced(by: configuration.connectDeadline)
    let thread = ConnectThread(
      configuration: qosLimit.limit(configuration),
      round: round,
      resolve: resolve,
      waker: waker
    )
    phase = .starting(thread, deadline: deadline)
    if state != .connecting { change(to: .connecting) }
  }

  /// Handles the result of the connecting thread.
  func receiveConnection() {
    guard case .starting(let thread, let deadline) = phase, let attempt = thread.result() else {
      return
    }
    round = attempt.round
    switch attempt.result {
    case .failure(let problem): attemptFailed(problem)
    case .connection(let connection):
      guard let socket = connection.handle.socket else {
        attemptFailed(ConnectionProblem(.unreachable, "the connection was closed at once"))
        return
      }
      do {
        try connection.open(socket, on: loop, for: self) { [unowned self] came in
          work { $0.connection?.serve(came) }
        }
      } catch {
        attemptFailed(ConnectionProblem(.unreachable, "\(error)"))
        return
      }
      self.connection = connection
      phase = .handshaking(deadline: deadline)
    }
  }

  /// Handles an accepted connection.
  func becomeConnected(_ connack: Connection.Connack) {
    guard let connection else { return }
    let now = EventLoop.now()
    statistics.connections += 1
    phase = .connected(since: now, keepAliveAt: configuration.nextKeepAlive(after: now))
    qosLimit.accepted(maximum: connack.maximumQoS)
    window.limit = max(1, min(configuration.window, connack.receiveMaximum ?? .max))
    // Under TLS OpenSSL may report an error at any time.
    if !connection.configuration.isEncrypted { connection.handle.endLog() }
    connection.subscribe(subscriptions.all)
    window.connected()
    reconnection.connected()
    olderProtocol.connected(connection.target, log)
    round.connected(to: connection.target)
    trouble = nil
    log.info(
      "Connected to the broker",
      [
        "broker": endpoint, "address": connection.target.address,
        "session": connack.sessionPresent ? "kept" : "new",
      ]
    )
    change(to: .connected(sessionPresent: connack.sessionPresent))
  }

  /// Closes the connection, reports publishes in flight as lost, and waits before the next attempt.
  ///
  /// Must not be called inside a call into the library.
  func end(_ problem: ConnectionProblem) {
    let now = EventLoop.now()
    var problem = problem
    var acceptedAt: Moment?
    let target = connection?.target
    if case .connected(let since, _) = phase {
      acceptedAt = since
      statistics.losses += 1
      problem = reconnection.lost(
        problem,
        after: since.duration(to: now),
        wasIdle: window.entries.isEmpty,
        at: now
      )
    }
    dropConnection()
    let droppedSince = problem.kind == .dropped ? acceptedAt : nil
    let loss = window.connectionEnded(droppedSince: droppedSince, at: now)
    if let (topic, until) = loss.quarantined {
      log.error(
        "Topic quarantined: the broker drops the connection for it",
        ["topic": topic, "for": "\(Reconnection.tenths(now.duration(to: until))) s"]
      )
    }
    if acceptedAt == nil { attemptFailed(problem, at: target) } else { wait(for: problem) }
    report(loss, at: now)
  }

  /// Tries the next address at once; after the last one of the round, waits.
  ///
  /// `target` is what was reached, if anything.
  private func attemptFailed(_ problem: ConnectionProblem, at target: AddressRound.Target? = nil) {
    if let target, !target.isOlder, configuration.allowsOlderVersion,
      configuration.version == .v5, olderProtocol.isDue(after: problem, at: target)
    {
      round.retryOlder(target)
    }
    if let problem = round.failed(problem) { wait(for: problem) } else { startAttempt() }
  }

  /// Schedules the next attempt.
  func wait(for problem: ConnectionProblem) {
    let now = EventLoop.now()
    let until = now.advanced(by: reconnection.delay(after: problem, at: now))
    phase = .waiting(until: until)
    trouble = (problem.trouble, problem.reason)
    change(to: .waiting(until: until, reason: problem.reason))
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
      connection?.writeOut()
      do {
        try connection?.handle.disconnect()
      } catch {
        finishClose()
        return
      }
      connection?.writeOut()
    }
  }

  func finishClose() {
    dropConnection()
    phase = .idle
    let now = EventLoop.now()
    let loss = window.connectionEnded(droppedSince: nil, at: now)
    change(to: .idle)
    report(loss, at: now)
  }

  /// Cancels the watch, then destroys the handle, which closes its socket.
  private func dropConnection() {
    connection?.drop()
    connection = nil
    wasReady = false
  }

  private func report(_ loss: PublishWindow.Loss, at now: Moment) {
    for entry in loss.entries { onOutcome?(entry.token, loss.outcome(of: entry, at: now)) }
  }

  private func change(to state: State) {
    self.state = state
    onState?(state)
  }

  /// Checks the deadlines of the current phase.
  func checkDeadlines() {
    let now = EventLoop.now()
    switch phase {
    case .idle: break
    case .starting(let thread, let deadline):
      guard deadline <= now else { return }
      thread.abandon()
      let problem = ConnectionProblem.noConnection(within: configuration.connectDeadline)
      if let problem = round.abandon(problem) { wait(for: problem) } else { startAttempt() }
    case .handshaking(let deadline):
      guard deadline <= now else { return }
      guard connection?.isOpen == true else {
        connection?.fail(.noConnection(within: configuration.connectDeadline))
        return
      }
      if let connection, connection.endLineForHTTP() {
        phase = .handshaking(
          deadline: now.advanced(by: min(.seconds(1), configuration.connectDeadline))
        )
        return
      }
      connection?.fail(.noAnswer(within: configuration.connectDeadline))
    case .connected(let since, let keepAliveAt):
      checkAcknowledgements(at: now)
      if since.advanced(by: ConnectionPhase.goodTime) <= now { window.connectionProvedGood() }
      if since.advanced(by: ConnectionPhase.provingTime) <= now { window.connectionProvedStable() }
      guard connection?.problem == nil, let keepAliveAt, keepAliveAt <= now else { return }
      phase = .connected(since: since, keepAliveAt: configuration.nextKeepAlive(after: now))
      connection?.keepAlive()
    case .closing(let deadline):
      if deadline <= now { finishClose() }
    case .waiting(let until):
      if until <= now { startAttempt() }
    }
  }

  private func checkAcknowledgements(at now: Moment) {
    let deadline = configuration.acknowledgementDeadline
    guard let connection, window.isOverdue(at: now, after: deadline) else { return }
    // This process may have been suspended: first read what has arrived meanwhile.
    connection.serve(.read)
    guard connection.problem == nil, window.isOverdue(at: now, after: deadline) else { return }
    guard connection.waitingBytes == 0 else { return window.fellBehind(at: now) }
    connection.fail(ConnectionProblem(.silent, "no acknowledgement within \(deadline)"))
  }

  /// Sets the timer to the next deadline of the current phase.
  func rearm() {
    timer?.arm(
      at: needsAttention
        ? .zero
        : phase.nextDeadline(
          window: window,
          acknowledgementDeadline: configuration.acknowledgementDeadline
        )
    )
  }
}

/// The events of the loop, what they defer, and the library's callbacks.
extension MQTTClient {
  /// Handles one event, then deferred work: nothing is closed or destroyed during the event.
  func work(_ body: (MQTTClient) -> Void) {
    guard !isBusy else {
      preconditionFailure("An event of the loop arrived inside another.")
    }
    isBusy = true
    body(self)
    performDeferredWork()
    isBusy = false
    rearm()
  }

  /// Performs deferred work, now that no call into the library is on the stack.
  private func performDeferredWork() {
    while true {
      if mustClose {
        mustClose = false
        beginClose()
      } else if let problem = connection?.problem {
        if case .closing = phase { finishClose() } else { end(problem) }
      } else if shouldWriteNow {
        connection?.writeOut()
        if connection?.problem == nil && shouldWriteNow { break }
      } else if canPublish && !wasReady {
        wasReady = true
        onReady?()
      } else {
        break
      }
    }
    connection?.updateInterest()
  }

  /// Whether deferred work is pending.
  var needsAttention: Bool {
    mustClose || connection?.problem != nil || (canPublish && !wasReady)
  }

  /// Whether to write now; before CONNACK the socket may not be open, and only the loop reports
  /// when it is writable.
  private var shouldWriteNow: Bool {
    guard let connection else { return false }
    return connection.isAccepted && connection.handle.wantsToWrite
  }

  /// Sends everything published in this batch, without waiting for the end of the batch.
  ///
  /// Publishes at QoS 0 may get their outcome; errors are reported with the next event. Has no
  /// effect inside a handler, after which the packets are sent anyway.
  package func flush() {
    guard let connection, connection.hasUnsent, !isBusy else { return }
    isBusy = true
    connection.hasUnsent = false
    connection.writeOut()
    isBusy = false
    connection.updateInterest()
    rearm()
  }

  /// Sends at the end of each batch; returns whether the owner may have more to do.
  func endBatch() -> Bool {
    let count = outcomeCount
    flush()
    return outcomeCount != count
  }

  /// Handles a message from the library.
  func received(
    _ message: UnsafePointer<mosquitto_message>,
    topic name: UnsafePointer<CChar>,
    properties: OpaquePointer?
  ) {
    let message = unsafe message.pointee
    statistics.received += 1
    let size = unsafe max(0, Int(message.payloadlen))
    if size > configuration.maximumPacket {
      ignoreOversized(size, topic: unsafe String(cString: name))
      return
    }
    if unsafe message.retain,
      unsafe !subscriptions.wantsRetained(String(cString: name), version)
    {
      statistics.retainedIgnored += 1
      onRetainedIgnored?(unsafe String(cString: name))
      return
    }
    guard let onMessage else { return }
    let topic = unsafe UnsafeRawBufferPointer(start: name, count: strlen(name))
    let payload = unsafe UnsafeRawBufferPointer(start: message.payload, count: size)
    let inbound = unsafe InboundMessage(
      flags: InboundMessage.Flags(qos: Int(message.qos), retained: message.retain),
      properties: properties
    )
    unsafe onMessage(
      Span(_unsafeBytes: topic),
      Span(_unsafeBytes: payload),
      inbound
    )
  }

  /// Handles the reply to a publish, or the end of writing one at QoS 0.
  func wasAnswered(_ identifier: Int32, code: Int32) {
    guard let entry = window.answered(identifier: identifier) else { return }
    outcomeCount &+= 1
    guard code >= 0x80 else {
      onOutcome?(entry.token, .acknowledged)
      return
    }
    refuse(entry.token, ReasonCode.words(code))
  }

  /// Handles the broker's answer for one filter of a SUBSCRIBE.
  func subscriptionAnswered(_ filter: String, code: Int32) {
    guard code >= 0x80 else {
      onSubscribed?(filter, nil)
      return
    }
    let reason = ReasonCode.words(code)
    log.warning("The broker refused a subscription", ["filter": filter, "reason": reason])
    onSubscribed?(filter, reason)
  }

  private func ignoreOversized(_ size: Int, topic: String) {
    statistics.oversizedIgnored += 1
    guard statistics.oversizedIgnored == 1 else { return }
    log.warning(
      "Message above the size limit ignored; further ones are only counted",
      ["topic": topic, "bytes": "\(size)", "limit": "\(configuration.maximumPacket)"]
    )
  }
}

/// Decides when a broker is tried with MQTT 3.1.1 because it does not understand MQTT 5.
///
/// Some brokers refuse the version, others only close the connection. A broker that is being
/// restarted closes it too, so that counts from the second time in a row on, for each address.
/// Nothing is kept beyond a connection: the next one is tried with MQTT 5 first, as the broker may
/// have been replaced.
struct OlderProtocol: Sendable {
  /// The targets whose latest attempt ended with a closed connection.
  private var closed: Set<AddressRound.Target> = []
  private var isLogged = false

  /// Whether to try 3.1.1 after an attempt with MQTT 5 at `target` ended with `problem`.
  mutating func isDue(after problem: ConnectionProblem, at target: AddressRound.Target) -> Bool {
    if problem.trouble == .closed { return !closed.insert(target).inserted }
    closed.remove(target)
    return problem.trouble == .version
  }

  /// Records a connection; logs the first with 3.1.1.
  mutating func connected(_ target: AddressRound.Target, _ log: Logger) {
    closed.removeAll()
    guard target.isOlder, !isLogged else { return }
    isLogged = true
    log.warning(
      "The broker does not speak MQTT 5; MQTT 3.1.1 is used",
      ["broker": "\(target.endpoint)", "to_choose": "protocol: 3.1.1"]
    )
  }
}
