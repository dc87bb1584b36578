// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc
import LastOut
import Operations

/// Reading and writing packets, and the library's callbacks.
extension MQTTClient {
  /// Packets that are read before other events of the loop are handled.
  private static let fairShare = 256
  /// Filters in one SUBSCRIBE.
  private static let filtersPerPacket = 100

  /// Handles one event, then what had to wait: nothing is closed or destroyed before its end.
  func work(_ body: (MQTTClient) -> Void) {
    guard !isBusy else {
      preconditionFailure("An event of the loop came inside another.")
    }
    isBusy = true
    body(self)
    settle()
    isBusy = false
    rearm()
  }

  /// Does what had to wait until no call into the library is on the stack.
  private func settle() {
    while true {
      if wantsClose {
        wantsClose = false
        beginClose()
      } else if let problem = pendingEnd {
        pendingEnd = nil
        if case .closing = phase { finishClose() } else { end(problem) }
      } else if wantsToWriteNow {
        writeOut()
        if pendingEnd == nil && wantsToWriteNow { break }
      } else if canPublish && !wasReady {
        wasReady = true
        onReady?()
      } else {
        break
      }
    }
    updateInterest()
  }

  /// Whether something still waits.
  var needsAttention: Bool {
    wantsClose || pendingEnd != nil || (canPublish && !wasReady)
  }

  /// Before CONNACK the socket may not be open yet: then only the loop says when to write.
  private var wantsToWriteNow: Bool {
    switch phase {
    case .connected, .closing: connection?.handle.wantsToWrite ?? false
    case .idle, .starting, .handshaking, .waiting: false
    }
  }

  /// Sends what was published since the batch began, without waiting for its end.
  ///
  /// Publishes at QoS 0 may have their outcome; errors come with the next event. Without effect
  /// inside a handler, after which the same happens anyway.
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

  /// Writes what the library has queued: a system call for each packet, but no segment for each.
  func writeOut() {
    let isBatch = queuedPackets > 1
    queuedPackets = 0
    if isBatch { holdSegments(true) }
    call { (handle) throws(MosquittoError) in try handle.write() }
    if isBatch, pendingEnd == nil { holdSegments(false) }
  }

  /// Has the kernel gather small segments, or send what it has gathered.
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

  /// The descriptor is ready.
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
    // After reading: why the broker closes the connection may be among what came.
    if came.contains(.write) { writeOut() }
  }

  /// In the middle of a TLS handshake the library reads a reset as nothing to read, and the loop
  /// would report the socket again and again.
  private var isDeadInHandshake: Bool {
    guard case .handshaking = phase, descriptor >= 0 else { return false }
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    _ = unsafe poll(&request, 1, 0)
    guard request.revents & Int16(POLLERR | POLLHUP) != 0 else { return false }
    var byte: UInt8 = 0
    return unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) <= 0
  }

  /// Reads until a call brings nothing, which is cheaper than asking the kernel after each packet.
  private func readAll() {
    guard let connection else { return }
    // OpenSSL may hold a packet that the library has not looked at: ask once more.
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
    // The descriptor's number may be used again from here on.
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

  /// A connection that could not be opened keeps polling as writable: ask the socket itself.
  private func socketFailure(hungUp: Bool) -> ConnectionProblem? {
    var request = pollfd(fd: descriptor, events: 0, revents: 0)
    _ = unsafe poll(&request, 1, 0)
    guard hungUp || request.revents & Int16(POLLERR | POLLHUP) != 0 else { return nil }
    var code: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
    // Without an error the broker has closed after an answer, which is still to be read.
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

  /// What one SUBSCRIBE's filters have in common.
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

/// Called by the library, through ``Connection``.
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

  /// An answer to a publish, or the end of writing one at QoS 0.
  func wasAnswered(_ identifier: Int32, code: Int32) {
    guard let entry = window.answered(identifier: identifier) else { return }
    guard code >= 0x80 else {
      report(entry.token, .acknowledged)
      return
    }
    statistics.refused += 1
    report(entry.token, .refused(reason: ReasonCode.words(code)))
  }

  /// An answer to a SUBSCRIBE, one code per filter.
  func wasSubscribed(_ identifier: Int32, granted: [Int32]) {
    guard let filters = subscribing.removeValue(forKey: identifier) else { return }
    for (filter, code) in zip(filters, granted) where code >= 0x80 {
      log.warning(
        "The broker refused a subscription",
        ["filter": filter, "reason": ReasonCode.words(code)]
      )
    }
  }

  /// A retained message counts as wanted if some matching subscription wants such, or asked to see
  /// the flag as published.
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
      "Message larger than the limit ignored; further ones are only counted",
      ["topic": topic, "bytes": "\(size)", "limit": "\(configuration.maximumPacket)"]
    )
  }
}
