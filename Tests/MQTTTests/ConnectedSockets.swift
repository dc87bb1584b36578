// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The result of one call of `read` or `write`.
enum CallResult: Hashable {
  case bytes(String)
  case count(Int)
  case failure(Int32)

  var count: Int {
    switch self {
    case .bytes(let text): text.utf8.count
    case .count(let count): count
    case .failure: -1
    }
  }
}

/// Two connected sockets that do not block, and the calls that a library makes on ours.
final class ConnectedSockets {
  let ours: Int32
  private var theirs: Int32

  init() throws {
    var pair: [Int32] = [-1, -1]
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue)
    guard unsafe socketpair(AF_UNIX, type, 0, &pair) == 0 else { throw SocketFailure(code: errno) }
    ours = pair[0]
    theirs = pair[1]
  }

  deinit {
    close(ours)
    closeTheirs()
  }

  func read(_ count: Int) -> CallResult { Self.read(count, from: ours) }

  static func read(_ count: Int, from descriptor: Int32) -> CallResult {
    var bytes = [UInt8](repeating: 0, count: count)
    let came = unsafe Glibc.read(descriptor, &bytes, count)
    if came < 0 { return .failure(errno) }
    return .bytes(String(decoding: bytes.prefix(came), as: UTF8.self))
  }

  func write(_ text: String) -> CallResult {
    let taken = unsafe Glibc.write(ours, text, text.utf8.count)
    return taken < 0 ? .failure(errno) : .count(taken)
  }

  /// How many bytes the kernel has for us.
  var waiting: Int {
    var count: Int32 = 0
    return unsafe ioctl(ours, UInt(FIONREAD), &count) == 0 ? Int(count) : -1
  }

  /// Sends text from the peer.
  func tell(_ text: String) {
    _ = unsafe Glibc.send(theirs, text, text.utf8.count, Int32(MSG_NOSIGNAL))
  }

  /// The text that the peer has received since the last call.
  func told() -> String {
    var all: [UInt8] = []
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = unsafe recv(theirs, &bytes, bytes.count, 0)
      guard count > 0 else { return String(decoding: all, as: UTF8.self) }
      all += bytes.prefix(count)
    }
  }

  /// A small send buffer.
  func narrow() {
    var size: Int32 = 4096
    unsafe setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &size, 4)
  }

  func closeTheirs() {
    guard theirs >= 0 else { return }
    close(theirs)
    theirs = -1
  }

  /// Closes the other side with something unread, which is an error on ours.
  func resetTheirs() {
    _ = unsafe Glibc.send(ours, "x", 1, Int32(MSG_NOSIGNAL))
    closeTheirs()
  }

  struct SocketFailure: Error {
    let code: Int32
  }
}
