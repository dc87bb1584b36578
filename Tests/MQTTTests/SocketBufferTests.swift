// Settle
// SPDX-License-Identifier: Apache-2.0

import CSocketBuffer
import Glibc
import Synchronization
import TestBroker
import Testing

@testable import MQTT

/// What the library reads and writes, without the library; a sanitizer keeps it from us.
@Suite(.enabled(if: SocketBuffer.isAvailable)) struct SocketBufferTests {
  static let capacity = Int(settle_socket_buffer_capacity)
  let ends: ConnectedSockets
  let buffer: SocketBuffer

  init() throws {
    ends = try ConnectedSockets()
    buffer = try #require(SocketBuffer(descriptor: ends.ours))
  }

  @Test func `what has come is taken at once and handed out in pieces`() {
    ends.tell("abcdef")
    #expect(served { ends.read(1) } == .bytes("a"))
    #expect(buffer.hasInput && buffer.isDrained)
    #expect(ends.waiting == 0)
    #expect(served { ends.read(3) } == .bytes("bcd"))
    #expect(served { ends.read(100) } == .bytes("ef"))
    #expect(!buffer.hasInput)
  }

  @Test func `a socket that had less than asked for is not asked again until it is readable`() {
    ends.tell("a")
    #expect(served { ends.read(1) } == .bytes("a"))
    ends.tell("b")
    #expect(served { ends.read(1) } == .failure(EAGAIN))
    buffer.beginReading()
    #expect(served { ends.read(1) } == .bytes("b"))
    buffer.beginReading()
    #expect(served { ends.read(1) } == .failure(EAGAIN))
    #expect(buffer.isDrained)
  }

  @Test func `a full buffer says that there may be more`() {
    ends.tell(String(repeating: "x", count: Self.capacity + 1))
    #expect(served { ends.read(Self.capacity - 1) }.count == Self.capacity - 1)
    #expect(!buffer.isDrained)
    #expect(served { ends.read(9) } == .bytes("x"))
    #expect(served { ends.read(9) } == .bytes("x"))
    #expect(buffer.isDrained)
  }

  @Test func `what is larger than the buffer goes past it`() {
    ends.tell("ab" + String(repeating: "x", count: Self.capacity))
    #expect(served { ends.read(Self.capacity + 100) }.count == Self.capacity + 2)
    #expect(buffer.isDrained && !buffer.hasInput)
  }

  @Test func `what came before the end comes first, then the end, again and again`() {
    ends.tell("abc")
    ends.closeTheirs()
    #expect(served { ends.read(2) } == .bytes("ab"))
    #expect(served { ends.read(2) } == .bytes("c"))
    buffer.beginReading()
    #expect(served { ends.read(2) } == .bytes(""))
    #expect(served { ends.read(2) } == .bytes(""))
  }

  @Test func `what came before an error comes first, then the error`() {
    ends.tell("abc")
    #expect(served { ends.read(1) } == .bytes("a"))
    ends.resetTheirs()
    #expect(served { ends.read(9) } == .bytes("bc"))
    buffer.beginReading()
    #expect(served { ends.read(1) } == .failure(ECONNRESET))
  }

  @Test func `what is written stays until it is sent, in order`() {
    #expect(served { ends.write("ab") } == .count(2))
    #expect(served { ends.write("cde") } == .count(3))
    #expect(ends.told() == "")
    #expect(buffer.hasOutput && buffer.queued == 5 && buffer.sent == 0)
    buffer.send()
    #expect(ends.told() == "abcde")
    #expect(!buffer.hasOutput && !buffer.isBlocked && buffer.sent == 5)
  }

  @Test func `what the kernel does not take waits, and nothing is lost or written twice`() {
    ends.narrow()
    var written = ""
    var isFull = false
    for number in 0..<10_000 where !isFull {
      let text = "\(number),"
      switch served({ ends.write(text) }) {
      case .count(let count): written += text.prefix(count)
      case .failure(EAGAIN): isFull = true
      case let other: Issue.record("\(other)")
      }
    }
    #expect(isFull && buffer.isBlocked && buffer.hasOutput)
    #expect(buffer.queued == UInt64(written.utf8.count))
    #expect(buffer.queued - buffer.sent <= UInt64(Self.capacity))
    var read = ends.told()
    while buffer.hasOutput {
      buffer.send()
      read += ends.told()
    }
    #expect(read == written)
    #expect(!buffer.isBlocked && buffer.sent == buffer.queued)
    #expect(served { ends.write("again") } == .count(5))
  }

  @Test func `a packet larger than the buffer leaves at once, after what was written before it`() {
    let large = String(repeating: "x", count: Self.capacity + 1)
    #expect(served { ends.write("ab") } == .count(2))
    #expect(served { ends.write(large) } == .count(Self.capacity + 1))
    #expect(ends.told() == "ab" + large)
    #expect(buffer.sent == buffer.queued)
  }

  @Test func `a send that fails is kept, and what is written then waits for ever`() {
    ends.closeTheirs()
    #expect(served { ends.write("ab") } == .count(2))
    #expect(buffer.failure == nil)
    buffer.send()
    #expect(buffer.failure == EPIPE || buffer.failure == ECONNRESET)
    #expect(served { ends.write("cd") } == .failure(EAGAIN))
    #expect(buffer.sent == 0)
  }

  @Test func `written through, everything leaves in order and at once`() {
    #expect(served { ends.write("ab") } == .count(2))
    buffer.writeThrough()
    #expect(served { ends.write("c") } == .count(1))
    #expect(ends.told() == "abc")
  }

  @Test func `written through, nothing overtakes what the kernel does not take`() {
    ends.narrow()
    while served({ ends.write("0123456789") }) == .count(10) {}
    buffer.writeThrough()
    #expect(served { ends.write("last") } == .failure(EAGAIN))
    var read = ends.told()
    while served({ ends.write("last") }) == .failure(EAGAIN) { read += ends.told() }
    read += ends.told()
    #expect(read.hasSuffix("last"))
    #expect(read.utf8.count == Int(buffer.sent))
  }

  @Test func `calls outside, on other descriptors and of other threads are not served`() throws {
    let others = try ConnectedSockets()
    others.tell("abc")
    #expect(served { others.read(1) } == .bytes("a"))
    #expect(others.waiting == 2)
    #expect(served { others.write("x") } == .count(1))
    #expect(others.told() == "x")
    ends.tell("abc")
    #expect(ends.read(1) == .bytes("a"))
    #expect(ends.waiting == 2)
    #expect(ends.write("y") == .count(1))
    #expect(ends.told() == "y")
    let ours = ends.ours
    let left = served {
      let thread = try? TestThread { _ = ConnectedSockets.read(1, from: ours) }
      thread?.join()
      return ends.waiting
    }
    #expect(left == 1)
  }

  @Test func `two buffers keep apart, also one inside the other`() throws {
    let others = try ConnectedSockets()
    let other = try #require(SocketBuffer(descriptor: others.ours))
    ends.tell("ab")
    others.tell("12")
    let results = served {
      let first = ends.read(1)
      var second = CallResult.bytes("")
      SocketBuffer.serving(other) {
        second = others.read(1)
        _ = others.write("other")
      }
      _ = ends.write("this")
      return [first, second, ends.read(1)]
    }
    #expect(results == [.bytes("a"), .bytes("1"), .bytes("b")])
    #expect(other.hasInput && !buffer.hasInput)
    buffer.send()
    #expect(ends.told() == "this" && others.told() == "")
    other.send()
    #expect(others.told() == "other")
  }

  @Test func `a number let go of is not written to, whoever has it then`() {
    #expect(served { ends.write("ab") } == .count(2))
    buffer.letGo()
    buffer.send()
    #expect(ends.told() == "")
    #expect(served { ends.write("cd") } == .count(2))
    #expect(ends.told() == "cd")
  }

  @Test func `no pair of stream sockets is had while they are refused, by this thread alone`() {
    settle_refuse_socket_pairs(true)
    defer { settle_refuse_socket_pairs(false) }
    #expect(pair(of: SOCK_STREAM) == EMFILE)
    #expect(pair(of: SOCK_DGRAM) == 0)
    let found = Found()
    let thread = try? TestThread { found.code.store(pair(of: SOCK_STREAM), ordering: .relaxed) }
    thread?.join()
    #expect(found.code.load(ordering: .relaxed) == 0)
    settle_refuse_socket_pairs(false)
    #expect(pair(of: SOCK_STREAM) == 0)
  }

  /// What `body` gets inside a call that is served.
  private func served<Result>(_ body: () -> Result) -> Result {
    var result: Result?
    SocketBuffer.serving(buffer) { result = body() }
    guard let result else { preconditionFailure("The body was called.") }
    return result
  }
}

/// What another thread found.
private final class Found: Sendable {
  let code = Atomic<Int32>(-1)
}

/// Makes a pair of sockets and closes it; an error number or 0.
private func pair(of type: __socket_type) -> Int32 {
  var pair: [Int32] = [-1, -1]
  guard unsafe socketpair(AF_UNIX, Int32(type.rawValue), 0, &pair) == 0 else { return errno }
  for descriptor in pair { close(descriptor) }
  return 0
}
