// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc
import LastOut
import Operations

/// Reading and writing packets.
extension Connection {
  /// The number of packets to read before other events of the loop are handled.
  private static let fairShare = 256
  /// For how long to read before that, checked after every eighth packet.
  private static let fairTime = Duration.milliseconds(5)

  /// How many bytes the broker has sent that were not read yet; costs a system call.
  var waitingBytes: Int { UnfinishedPacket.unread(at: descriptor) }

  /// Whether the other side has accepted the connection.
  var isOpen: Bool {
    var address = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getpeername(descriptor, $0, &size) == 0
      }
    }
  }

  /// Handles a ready descriptor.
  func serve(_ came: IOInterest) {
    // What came before the other side reset the connection may say why: it is read first.
    if !isAccepted, waitingBytes == 0,
      let problem = socketFailure(hungUp: came.contains(.hangUp))
    {
      fail(problem)
      return
    }
    if !isAccepted, let other = foreignProtocol {
      fail(ConnectionProblem(.refused, other, .notMQTT))
      return
    }
    if came.contains(.read) || came.contains(.hangUp) {
      let (count, waiting) = (callbackCount, unfinished.waiting(at: descriptor))
      readAll()
      unfinished.read(waiting, isFinished: callbackCount != count)
      if callbackCount != count, let client, client.unacknowledgedCount > 0 {
        client.window.heard(at: EventLoop.now())
      }
      if unfinished.bytes > configuration.largestUnfinished {
        fail(
          ConnectionProblem(
            .silent,
            "the broker sends a packet larger than \(configuration.largestUnfinished) bytes"
          )
        )
      }
    }
    if problem == nil, came.contains(.hangUp) || isDeadInHandshake {
      fail(ConnectionProblem(.dropped, ConnectionProblem.closedByPeer, isAccepted ? nil : .closed))
    }
    // After reading: the received bytes may contain the reason for closing the connection.
    if came.contains(.write) { writeOut() }
  }

  /// Whether the socket is reset during the TLS handshake: the library takes that for nothing to
  /// read, and the loop would report the socket endlessly.
  private var isDeadInHandshake: Bool {
    guard !isAccepted, descriptor >= 0 else { return false }
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    _ = unsafe poll(&request, 1, 0)
    guard request.revents & Int16(POLLERR | POLLHUP) != 0 else { return false }
    var byte: UInt8 = 0
    return unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) <= 0
  }

  /// What the other side speaks, if its first bytes are those of a web server or of TLS, which do
  /// not understand CONNECT; they stay unread.
  private var foreignProtocol: String? {
    guard !configuration.isEncrypted, descriptor >= 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: 5)
    let count = unsafe recv(descriptor, &bytes, bytes.count, Int32(MSG_PEEK | MSG_DONTWAIT))
    guard count == bytes.count else { return nil }
    if TLSGreeting.isRecord(bytes) { return ConnectionProblem.answersInTLS }
    let start = String(decoding: bytes, as: UTF8.self).lowercased()
    let isHTTP = start == "http/" || start == "<!doc" || start == "<html"
    return isHTTP ? ConnectionProblem.answersInHTTP : nil
  }

  /// Ends the line that a web server takes CONNECT for, so that it answers; a broker that is silent
  /// until now is given up anyway.
  ///
  /// - Returns: Whether an answer may come: the first time, without TLS.
  func endLineForHTTP() -> Bool {
    guard !configuration.isEncrypted, !hasEndedLine, descriptor >= 0 else { return false }
    hasEndedLine = true
    let end = Array("\r\n\r\n".utf8)
    return unsafe send(descriptor, end, end.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT)) == end.count
  }

  /// Reads until a call returns nothing, which is cheaper than asking the kernel after each packet.
  private func readAll() {
    // OpenSSL may hold a packet that the library has not read: read once more.
    var patience = configuration.isEncrypted ? 1 : 0
    let end = EventLoop.now().advanced(by: Self.fairTime)
    var number = 0
    while true {
      number += 1
      let isOver = number > Self.fairShare || number.isMultiple(of: 8) && EventLoop.now() > end
      // The loop does not report what is in OpenSSL's buffer, so that is read in any case.
      if isOver, !configuration.isEncrypted || !handle.hasDecrypted { return }
      let count = callbackCount
      call { (handle) throws(MosquittoError) in try handle.read() }
      guard problem == nil else { return }
      guard callbackCount == count else { continue }
      if patience == 0 { return }
      patience -= 1
    }
  }

  /// Writes the packets that the library has queued: one system call per packet, in full segments.
  func writeOut() {
    let isBatch = queuedPackets > 1
    queuedPackets = 0
    if isBatch { holdSegments(true) }
    call { (handle) throws(MosquittoError) in try handle.write() }
    if isBatch, problem == nil { holdSegments(false) }
  }

  /// Makes the kernel hold back small segments, or send those that it holds.
  private func holdSegments(_ isHeld: Bool) {
    guard descriptor >= 0, configuration.isTCP else { return }
    var flag: Int32 = isHeld ? 1 : 0
    let size = socklen_t(MemoryLayout<Int32>.size)
    unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_CORK, &flag, size)
  }

  /// Sends pings, and detects unanswered ones.
  func keepAlive() {
    call { (handle) throws(MosquittoError) in try handle.keepAlive() }
  }

  /// Queues SUBSCRIBE packets.
  func subscribe(_ subscriptions: [Subscription]) {
    for packet in Subscription.Packet.all(for: subscriptions, version: configuration.version) {
      do {
        let identifier = try handle.subscribe(
          packet.filters,
          qos: packet.qos,
          options: packet.options
        )
        subscribing[identifier] = packet.filters
      } catch {
        fail(error)
        return
      }
    }
  }

  /// Makes one call into the library and checks the connection afterwards.
  private func call(_ body: (borrowing MosquittoHandle) throws(MosquittoError) -> Void) {
    guard problem == nil else { return }
    var failure: MosquittoError?
    do {
      try body(handle)
    } catch {
      failure = error
    }
    if let connack {
      self.connack = nil
      if connack.code != 0 {
        client?.qosLimit.refused(connackCode: connack.code)
        fail(
          ConnectionProblem(connackCode: connack.code, sendsUsername: configuration.username != nil)
        )
      } else if failure == nil, !isAccepted {
        isAccepted = true
        client?.becomeConnected(connack)
      }
    }
    guard failure != nil || handle.socket != descriptor else { return }
    // From here on the system may reuse the descriptor's number.
    stopWatching()
    fail(failure)
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
    let reason = unsafe String(cString: strerror(code))
    return ConnectionProblem(.unreachable, reason, code == ECONNRESET ? .closed : nil)
  }
}

/// Counts the bytes of an incomplete packet.
///
/// The library reads a packet of any length into memory before it calls back, and has no limit
/// option. It reads until the socket is empty, so a packet that arrives faster than that, as from a
/// broker on the same machine, is detected only when it is complete. This costs nothing while each
/// event completes a packet.
struct UnfinishedPacket: Hashable, Sendable {
  /// The bytes since the last complete packet; slightly underestimated, never overestimated.
  private(set) var bytes = 0
  private var isOpen = false

  /// The number of unread bytes; 0 without a system call while packets arrive completely.
  func waiting(at descriptor: Int32) -> Int {
    isOpen ? Self.unread(at: descriptor) : 0
  }

  /// The number of unread bytes in the kernel; costs a system call.
  static func unread(at descriptor: Int32) -> Int {
    var count: Int32 = 0
    return unsafe ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
  }

  /// Records that all waiting bytes were read; `isFinished` if that completed a packet.
  mutating func read(_ waiting: Int, isFinished: Bool) {
    bytes = isFinished ? 0 : bytes + waiting
    isOpen = !isFinished
  }
}

/// Finds out whether a port speaks TLS.
///
/// Most servers with TLS close a connection that begins with something else, and do not say why.
package enum TLSGreeting {
  /// Whether bytes begin with a record of TLS: an alert, or a part of the handshake.
  static func isRecord(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 3 else { return false }
    return (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 0x03 && bytes[2] <= 0x04
  }

  /// Whether a host answers the beginning of a TLS handshake at a port.
  ///
  /// Blocks: to resolve the name, and for up to `seconds` each to connect and to get an answer.
  package static func isAnswered(host: String, port: Int, seconds: Int = 3) -> Bool {
    guard let descriptor = BlockingSocket.connected(host, port, seconds: seconds)
    else { return false }
    defer { close(descriptor) }
    let hello = clientHello
    guard unsafe send(descriptor, hello, hello.count, Int32(MSG_NOSIGNAL)) == hello.count
    else { return false }
    var answer = [UInt8](repeating: 0, count: 3)
    let count = unsafe recv(descriptor, &answer, answer.count, Int32(MSG_WAITALL))
    return count == answer.count && isRecord(answer)
  }

  /// The first message of a handshake, of TLS 1.2: four cipher suites and no extension.
  ///
  /// A server that wants more answers with an alert, which is an answer too.
  private static let clientHello: [UInt8] = {
    let suites: [UInt8] = [0x13, 0x01, 0xC0, 0x2F, 0xC0, 0x30, 0x00, 0x9C]
    var body: [UInt8] = [0x03, 0x03] + [UInt8](repeating: 0x5E, count: 32) + [0]
    body += [0, UInt8(suites.count)] + suites + [1, 0]
    let message = [0x01, 0, 0, UInt8(body.count)] + body
    return [0x16, 0x03, 0x01, 0, UInt8(message.count)] + message
  }()
}
