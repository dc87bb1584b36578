// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import LastOut
internal import Operations

/// One client connection.
final class HTTPConnection {
  weak var server: HTTPServer?
  let descriptor: Int32
  /// The client's address, without its port.
  let peer: String
  let isTrusted: Bool
  /// When the client must have sent or read more.
  var deadline: Moment?
  /// Since when the connection is between two requests; `nil` during one and before the first.
  var idleSince: Moment?
  /// Since when the client has neither completed its request nor read more of its response; `nil`
  /// between two requests, and while the client waits for the gateway.
  private(set) var stalledSince: Moment?
  /// The current request.
  var exchange: HTTPExchange?
  private var hangUp: IOWatch?
  /// The library has closed the socket.
  private var isOver = false

  init(server: HTTPServer, descriptor: Int32, peer: String, isTrusted: Bool) {
    self.server = server
    self.descriptor = descriptor
    self.peer = peer
    self.isTrusted = isTrusted
  }

  /// It is the client's turn: it must send or read more within `time`, or the connection ends.
  func waitForClient(within time: Duration) {
    stalledSince = EventLoop.now()
    server?.setDeadline(of: self, after: time)
  }

  /// It is the gateway's turn, or the client may be silent.
  func stopWaitingForClient() {
    stalledSince = nil
    server?.setDeadline(of: self, after: nil)
  }

  /// Whether the client makes no progress; one that was sent a part of a response a moment ago may
  /// be reading it.
  func isStalled(at now: Moment) -> Bool {
    guard let stalledSince else { return false }
    return exchange?.isAnswered != true || stalledSince.duration(to: now) >= .seconds(1)
  }

  /// Looks whether the client goes away, which the library does not notice while it reads nothing,
  /// or when the end came together with part of a request.
  func watchHangUp() {
    guard hangUp == nil, let server else { return }
    hangUp = try? server.loop.watch(descriptor, for: .hangUp, named: "HTTP client disconnected") {
      [weak self] _ in self?.hangUpCame()
    }
  }

  private func stopWatching() {
    hangUp?.cancel()
    hangUp = nil
  }

  private func hangUpCame() {
    stopWatching()  // It would be reported again and again.
    guard let server else { return }
    if exchange?.isReceiving ?? true {
      // What came before the end may complete a request, which is answered; what it waits for
      // watches again.
      server.run()
      guard !isOver, exchange?.isReceiving ?? true, isAtEnd else { return }
      end()
      server.run()
    } else if exchange?.isWaiting ?? false {
      end()
      server.answerResumed()
    }
  }

  /// Whether nothing more comes from the client.
  private var isAtEnd: Bool {
    var byte: UInt8 = 0
    let count = unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
    return count == 0 || (count < 0 && errno != EAGAIN)
  }

  /// Ends the connection; the library closes it the next time it runs.
  func end() {
    shutdown(descriptor, Int32(SHUT_RDWR))
    exchange?.abandon()
  }

  /// Ends the connection because its request did not arrive in time.
  func endAsTooSlow() {
    end(saying: Problem(408, "too_slow", "the request did not arrive in time"))
  }

  /// Sends the reason, unless a response has started, and ends the connection.
  func end(saying problem: Problem) {
    deadline = nil
    if exchange?.isAnswered != true {
      HTTPListener.reject(problem, on: descriptor)
      server?.recordResponse(problem.status)
    }
    end()
  }

  func ended() {
    isOver = true
    stopWatching()
    deadline = nil
    exchange?.ended(isTooSlow: false)
    exchange = nil
  }
}
