// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import LastOut
internal import Operations

/// One client, for as long as its socket is open.
final class HTTPConnection {
  weak var server: HTTPServer?
  let descriptor: Int32
  /// The client's address, without its port.
  let peer: String
  let isTrusted: Bool
  /// When the client must have said what it has begun to say.
  var deadline: Moment?
  /// Since when it has been between two requests; `nil` during one and before the first.
  var idleSince: Moment?
  /// The request that is under way.
  var exchange: HTTPExchange?
  private var hangUp: IOWatch?

  init(server: HTTPServer, descriptor: Int32, peer: String, isTrusted: Bool) {
    self.server = server
    self.descriptor = descriptor
    self.peer = peer
    self.isTrusted = isTrusted
  }

  /// Looks whether the client goes away while nothing is read from it.
  func watchHangUp() {
    guard hangUp == nil, let server else { return }
    hangUp = try? server.loop.watch(descriptor, for: .hangUp, named: "HTTP client gone") {
      [weak self] _ in
      self?.stopWatching()
      self?.end()
      self?.server?.settle()
    }
  }

  func stopWatching() {
    hangUp?.cancel()
    hangUp = nil
  }

  /// Ends the connection; the library closes it when it looks at it next.
  func end() {
    shutdown(descriptor, Int32(SHUT_RDWR))
    exchange?.abandon()
  }

  /// Says why, as far as nothing else is being said, and ends the connection.
  func endAsTooSlow() {
    deadline = nil
    if exchange?.isAnswered != true {
      let problem = Problem(408, "too_slow", "the request did not come in time")
      HTTPListener.say(problem, on: descriptor)
      server?.noteAnswer(problem.status)
    }
    end()
  }

  func ended() {
    stopWatching()
    deadline = nil
    exchange?.ended(isTooSlow: false)
    exchange = nil
  }
}
