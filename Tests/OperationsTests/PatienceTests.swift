// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import TestBroker
import Testing

/// How the tests wait: as long as something progresses, and in vain only once.
@Suite struct PatienceTests {
  private static let limit = Duration.milliseconds(60)

  /// Waits to the end; returns how long that took.
  private func duration(
    of wait: @autoclosure () -> Wait,
    _ progress: () -> Int = { 0 }
  ) -> Duration {
    let start = EventLoop.now()
    var wait = wait()
    while let left = wait.remaining(progress()) {
      #expect(left <= .seconds(1))
    }
    return start.duration(to: EventLoop.now())
  }

  @Test func `nothing is waited for after a wait that ran out`() {
    Patience.$current.withValue(Patience(Self.limit)) {
      #expect(duration(of: Wait(within: Self.limit)) >= Self.limit)
      var next = Wait()
      #expect(next.remaining() == nil)
      var short = Wait(within: .milliseconds(1))
      #expect(short.remaining() == nil)
    }
  }

  @Test func `a shorter wait may run out`() {
    Patience.$current.withValue(Patience()) {
      #expect(duration(of: Wait(within: Self.limit)) >= Self.limit)
      var next = Wait()
      #expect(next.remaining() != nil)
    }
  }

  @Test func `one test's patience is not that of another`() {
    Patience.$current.withValue(Patience(Self.limit)) { _ = duration(of: Wait(within: Self.limit)) }
    Patience.$current.withValue(Patience()) {
      var wait = Wait()
      #expect(wait.remaining() != nil)
    }
  }

  @Test func `a wait goes on while there is progress, but not for ever`() {
    Patience.$current.withValue(Patience(Self.limit)) {
      let start = EventLoop.now()
      let few = duration(of: Wait(within: Self.limit)) {
        start.duration(to: EventLoop.now()) < Self.limit * 3 ? Int.random(in: 1...1000) : 0
      }
      #expect(few >= Self.limit * 4)
    }
    Patience.$current.withValue(Patience(Self.limit)) {
      var number = 0
      let endless = duration(of: Wait(within: Self.limit)) {
        number += 1
        return number
      }
      #expect(endless >= Self.limit * 10)
    }
  }

  @Test func `the work of a process is progress`() throws {
    let limit = Duration.milliseconds(500)
    try Patience.$current.withValue(Patience(limit)) {
      let process = try SpawnedProcess(arguments: ["/bin/sh", "-c", "while :; do :; done"])
      defer {
        process.signal(SIGKILL)
        // The runner of exit tests does not get past a process that has ended and nobody waited
        // for.
        process.wait(milliseconds: -1)
      }
      Patience.follow(process.processID)
      let start = EventLoop.now()
      let length = duration(of: Wait(within: limit)) {
        if start.duration(to: EventLoop.now()) > limit * 3 { process.signal(SIGKILL) }
        return 0
      }
      #expect(length >= limit * 3)
    }
  }
}
