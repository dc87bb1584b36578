// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc
import LastOut
import Operations

/// Reading and writing packets, and the library's callbacks.
extension MQTTClient {
  /// The number of packets to read before other events of the loop are handled.
  private static let fairShare = 256
  /// The maximum number of filters in one SUBSCRIBE.
  private static let filtersPerPacket = 100

  /// Handles one event, then deferred work: nothing is closed or destroyed during the event.
  func work(_ body: (MQTTClient) -> Void) {
    guard !isBusy else {
      preconditionFailure("An event of the loop arrived inside another.")
    }
    isBusy = true
    body(self)
    settle()
    isBusy = false
    rearm()
  }

  /// Performs deferred work, now that no call into the library is on the stack.
  private func settle() {
    while true {
      if mustClose {
        mustClose = false
        beginClose()
      } else if let problem = pendingEnd {
        pendingEnd = nil
        if case .closing = phase { finishClose() } else { end(problem) }
      } else if shouldWriteNow {
        writeOut()
        if pendingEnd == nil && shouldWriteNow { break }
      } else if canPublish && !wasReady {
        wasReady = true
        onReady?()
      } else {
        break
      }
    }
    updateInterest()
  }

  /// Whether deferred work is pending.
  var needsAttention: Bool {
    mustClose || pendingEnd != nil || (canPublish && !wasReady)
  }

  /// Whether to write now; before CONNACK the socket may not be open, and only the loop reports when
  /// it is writable.
  private var shouldWriteNow: Bool {
    switch phase {
    case .connected, .closing: connection?.handle.wantsToWrite ?? false
    case .idle, .starting, .handshaking, .waiting: false
    }
  }

  /// Sends everything published in this batch, without waiting for the end of the batch.
  ///
  /// Publishes at QoS 0 may get their outcome; errors are reported with the next event. Has no effect
  /// inside a handler, after which the packets are sent anyway.
  package func flush() {
    guard hasUnsent, !isBusy else { return }
    isBusy = true
    hasUnsent = false
    writeOut()
    isBusy = false
    updateInterest()
    rearm()
  }

  /// Sends at the end of each batch; returns whether the owner may have more to do.
  func endBatch() -> Bool {
    let count = outcomeCount
    flush()
    return outcomeCount != count
  }

  /// Writes the packets that the library has queued: one system call per packet, in full segments.
  func writeOut() {
    let isBatch = queuedPackets > 1
    queuedPackets = 0
    if isBatch { holdSegments(true) }
    call { (handle) throws(MosquittoError) in try handle.write() }
    if isBatch, pendingEnd == nil { holdSegments(false) }
  }

  /// Makes the kernel hold back small segments, or send those that it holds.
  private func holdSegments(_ isHeld: Bool) {
    guard descriptor >= 0, configuration.isTCP else { return }
    var flag: Int32 = isHeld ? 1 : 0
    let size = socklen_t(MemoryLayout<Int32>.size)
    unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_CORK, &flag, size)
  }

  func report(_ token: Token, _ outcome: Outcome) {
    outcomeCount &+= 1
    onOutcome?(token, outcome)
  }

  /// Handles a ready descriptor.
  func serve(_ came: IOInterest) {
    if case .handshaking = phase, let problem = socketFailure(hungUp: came.contains(.hangUp)) {
      pendingEnd = problem
      return
    }
    if came.contains(.read) || came.contains(.hangUp) {
      let (count, waiting) = (connection?.callbackCount, unfinished.waiting(at: descriptor))
      readAll()
      let isFinished = connection?.callbackCount != count
      unfinished.read(waiting, isFinished: isFinished)
      if pendingEnd == nil, unfinished.bytes > configuration.largestUnfinished {
        pendingEnd = ConnectionProblem(
          .silent,
          "the broker sends a packet larger than \(configuration.largestUnfinished) bytes"
        )
      }
    }
    if pendingEnd == nil, came.contains(.hangUp) || isDeadInHandshake {
      pendingEnd = ConnectionProblem(.dropped, "the connection was closed by the other side")
    }
    // After reading: the received bytes may contain the reason for closing the connection.
    if came.contains(.write) { writeOut() }
  }

  /// Whether the socket is reset during the TLS handshake: the library takes that for nothing to
  /// read, and the loop would report the socket endlessly.
  private var isDeadInHandshake: Bool {
    guard case .handshaking = phase, descriptor >= 0 else { return false }
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    _ = unsafe poll(&request, 1, 0)
    guard request.revents & Int16(POLLERR | POLLHUP) != 0 else { return false }
    var byte: UInt8 = 0
    return unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) <= 0
  }

  /// Reads until a call returns nothing, which is cheaper than asking the kernel after each packet.
  private func readAll() {
    guard let connection else { return }
    // OpenSSL may hold a packet that the library has not read: read once more.
    var patience = configuration.isEncrypted ? 1 : 0
    for _ in 0..<Self.fairShare {
      let count = connection.callbackCount
      call { (handle) throws(MosquittoError) in try handle.read() }
      guard pendingEnd == nil, self.connection === connection else { return }
      guard connection.callbackCount == count else { continue }
      if patience == 0 { return }
      patience -= 1
    }
  }

  /// Makes one call into the library and checks the connection afterwards.
  func call(_ body: (borrowing MosquittoHandle) throws(MosquittoError) -> Void) {
    guard let connection, pendingEnd == nil else { return }
    var failure: MosquittoError?
    do {
      try body(connection.handle)
    } catch {
      failure = error
    }
    if let connack = connection.connack {
      connection.connack = nil
      if connack.code != 0 {
        pendingEnd = ConnectionProblem(connackCode: connack.code)
      } else if failure == nil, case .handshaking = phase {
        becomeConnected(connack)
      }
    }
    guard failure != nil || connection.handle.socket != descriptor else { return }
    // From here on the system may reuse the descriptor's number.
    watch?.cancel()
    watch = nil
    pendingEnd = pendingEnd ?? problem(failure)
  }

  /// Why the connection is gone, from the most specific source.
  func problem(_ failure: MosquittoError?) -> ConnectionProblem {
    if let code = connection?.disconnectCode, code >= 0x80 {
      return ConnectionProblem(disconnectCode: code)
    }
    var reason = failure?.reason ?? "the connection was closed by the other side"
    if let connection { reason = connection.reason(reason, configuration) }
    if case .connected = phase {
      let isSilent = failure?.code == Int32(MOSQ_ERR_KEEPALIVE.rawValue)
      return ConnectionProblem(isSilent ? .silent : .dropped, reason)
    }
    return ConnectionProblem(.unreachable, reason)
  }

  /// The error of a socket that did not connect: it polls as writable, so the socket is queried.
  private func socketFailure(hungUp: Bool) -> ConnectionProblem? {
    var request = pollfd(fd: descriptor, events: 0, revents: 0)
    _ = unsafe poll(&request, 1, 0)
    guard hungUp || request.revents & Int16(POLLERR | POLLHUP) != 0 else { return nil }
    var code: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
    // Without an error, the broker closed the connection after a reply that is not read yet.
    guard code != 0 else { return nil }
    return ConnectionProblem(.unreachable, unsafe String(cString: strerror(code)))
  }

  private func updateInterest() {
    guard let watch, let connection else { return }
    watch.interest = connection.handle.wantsToWrite ? [.read, .write] : .read
  }

  func sendSubscriptions(_ subscriptions: [Subscription]) {
    guard let connection else { return }
    let groups = Dictionary(grouping: subscriptions) { SubscribeOptions($0) }
    for (options, members) in groups {
      var rest = members.map(\.filter)[...]
      while !rest.isEmpty {
        let filters = Array(rest.prefix(Self.filtersPerPacket))
        rest = rest.dropFirst(filters.count)
        do {
          let identifier = try connection.handle.subscribe(
            filters,
            qos: options.qos,
            options: configuration.version == .v5 ? options.options : 0
          )
          subscribing[identifier] = filters
        } catch {
          pendingEnd = pendingEnd ?? problem(error)
          return
        }
      }
    }
  }

  /// The options that all filters of one SUBSCRIBE share.
  private struct SubscribeOptions: Hashable {
    let qos: Int32
    let options: Int32

    init(_ subscription: Subscription) {
      qos = Int32(min(max(subscription.qos, 0), 2))
      var options: UInt32 = 0
      if subscription.noLocal { options |= MQTT_SUB_OPT_NO_LOCAL.rawValue }
      if subscription.keepsRetainFlag { options |= MQTT_SUB_OPT_RETAIN_AS_PUBLISHED.rawValue }
      if !subscription.wantsRetained { options |= MQTT_SUB_OPT_SEND_RETAIN_NEVER.rawValue }
      self.options = Int32(options)
    }
  }
}

/// The callbacks of the library, through ``Connection``.
extension MQTTClient {
  func received(_ message: UnsafePointer<mosquitto_message>, properties: OpaquePointer?) {
    let message = unsafe message.pointee
    guard let name = unsafe message.topic else { return }
    guard unsafe strpbrk(name, "+#") == nil else {
      // The library accepts such a topic; no broker that follows the protocol sends it.
      pendingEnd = ConnectionProblem(.silent, "the broker sent a message to a wildcard topic")
      return
    }
    statistics.received += 1
    if unsafe message.qos > 0 { queuedPackets += 1 }  // Its acknowledgement.
    let size = unsafe max(0, Int(message.payloadlen))
    if size > configuration.maximumPacket {
      ignoreOversized(size, topic: unsafe String(cString: name))
      return
    }
    if unsafe message.retain, unsafe !isRetainedWanted(String(cString: name)) {
      statistics.retainedIgnored += 1
      onRetainedIgnored?(unsafe String(cString: name))
      return
    }
    guard let onMessage else { return }
    let topic = unsafe UnsafeRawBufferPointer(start: name, count: strlen(name))
    let payload = unsafe UnsafeRawBufferPointer(start: message.payload, count: size)
    let inbound = unsafe InboundMessage(
      flags: MessageFlags(qos: Int(message.qos), retained: message.retain),
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
    guard code >= 0x80 else {
      report(entry.token, .acknowledged)
      return
    }
    statistics.refused += 1
    report(entry.token, .refused(reason: ReasonCode.words(code)))
  }

  /// Handles the reply to a SUBSCRIBE, with one code per filter.
  func wasSubscribed(_ identifier: Int32, granted: [Int32]) {
    guard let filters = subscribing.removeValue(forKey: identifier) else { return }
    for (filter, code) in zip(filters, granted) where code >= 0x80 {
      log.warning(
        "The broker refused a subscription",
        ["filter": filter, "reason": ReasonCode.words(code)]
      )
    }
  }

  /// Whether a matching subscription receives retained messages, or keeps the retain flag.
  private func isRetainedWanted(_ topic: String) -> Bool {
    let isV5 = configuration.version == .v5
    return subscriptions.contains(matching: topic) {
      $0.wantsRetained || $0.keepsRetainFlag && isV5
    }
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
