// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import Synchronization
import TestBroker
import Testing

@Suite(.blocking) struct EventLoopTests {
  let loop: EventLoop
  /// Ends a test that would otherwise hang; armed by `run`.
  let guardTimer: LoopTimer
  let hung = Recorder<Void>()

  init() throws {
    let loop = try EventLoop()
    let hung = hung
    self.loop = loop
    guardTimer = try loop.makeTimer {
      hung.add(())
      loop.stop()
    }
  }

  func run() {
    guardTimer.arm(at: EventLoop.now().advanced(by: .patience))
    loop.run()
    #expect(hung.values.isEmpty, "The loop was not stopped in time.")
  }

  @Test func `a timer fires once, never before its deadline`() throws {
    let fired = Recorder<Moment>()
    let deadline = EventLoop.now().advanced(by: .microseconds(2300))
    let timer = try loop.makeTimer { fired.add(EventLoop.now()) }
    let end = try loop.makeTimer { [loop] in loop.stop() }
    timer.arm(at: deadline)
    end.arm(at: deadline.advanced(by: .milliseconds(20)))
    run()
    #expect(fired.values.count == 1)
    #expect(try #require(fired.values.first) >= deadline)
  }

  @Test func `timers fire in the order of their deadlines, whatever the order of arming`() throws {
    let order = Recorder<Int>()
    let start = EventLoop.now()
    var timers: [LoopTimer] = []
    for number in [3, 1, 4, 2, 0] {
      let timer = try loop.makeTimer { [loop] in
        order.add(number)
        if number == 4 { loop.stop() }
      }
      timer.arm(at: start.advanced(by: .milliseconds(1 + number)))
      timers.append(timer)
    }
    run()
    #expect(order.values == [0, 1, 2, 3, 4])
  }

  @Test func `a deadline that has passed, zero included, fires at once`() throws {
    let timer = try loop.makeTimer { [loop] in loop.stop() }
    timer.arm(at: .zero)
    run()
  }

  @Test func `a batch end repeats while work is left, until it is cancelled`()
    throws
  {
    let order = Recorder<String>()
    loop.afterBatch = { order.add("after") }
    var left = 2
    let end = loop.atBatchEnd {
      order.add("end")
      left -= 1
      return left > 0
    }
    let timer = try loop.makeTimer { [loop] in
      order.add("event")
      end.cancel()
      loop.stop()
    }
    timer.arm(at: EventLoop.now())
    run()
    #expect(order.values == ["after", "end", "after", "end", "event"])
  }

  @Test func `a batch that never ends does not block other events`() throws {
    let end = loop.atBatchEnd { true }
    let timer = try loop.makeTimer { [loop] in loop.stop() }
    timer.arm(at: EventLoop.now().advanced(by: .milliseconds(1)))
    run()
    end.cancel()
  }

  @Test func `the batch in which the loop is stopped ends, too`() throws {
    let order = Recorder<String>()
    let end = loop.atBatchEnd {
      order.add("end")
      return false
    }
    let timer = try loop.makeTimer { [loop] in
      order.removeAll()
      loop.stop()
    }
    timer.arm(at: EventLoop.now())
    run()
    #expect(order.values == ["end"])
    end.cancel()
  }

  @Test func `arming replaces, disarming and cancelling silence`() throws {
    let order = Recorder<String>()
    let start = EventLoop.now()
    let moved = try loop.makeTimer { order.add("moved") }
    moved.arm(at: start)
    moved.arm(at: start.advanced(by: .milliseconds(4)))
    let disarmed = try loop.makeTimer { order.add("disarmed") }
    disarmed.arm(at: start)
    disarmed.arm(at: nil)
    let cancelled = try loop.makeTimer { order.add("cancelled") }
    cancelled.arm(at: start)
    cancelled.cancel()
    cancelled.arm(at: start)
    let early = try loop.makeTimer { order.add("early") }
    early.arm(at: start.advanced(by: .milliseconds(1)))
    let end = try loop.makeTimer { [loop] in loop.stop() }
    end.arm(at: start.advanced(by: .milliseconds(8)))
    run()
    #expect(order.values == ["early", "moved"])
  }

  @Test func `a handler may re-arm itself and cancel another timer that is due as well`() throws {
    let order = Recorder<String>()
    let start = EventLoop.now()
    let box = Recorder<LoopTimer>()
    let first = try loop.makeTimer { [loop] in
      order.add("first")
      box.values[1].cancel()
      if order.values.count < 3 { box.values[0].arm(at: start) } else { loop.stop() }
    }
    let second = try loop.makeTimer { order.add("second") }
    box.add(first)
    box.add(second)
    first.arm(at: start)
    second.arm(at: start.advanced(by: .nanoseconds(1)))
    run()
    #expect(order.values == ["first", "first", "first"])
    box.removeAll()
  }

  @Test func `a watch reports its interest, and its handler may cancel it`() throws {
    let pipe = try Pipe()
    let seen = Recorder<IOInterest>()
    let box = Recorder<IOWatch>()
    box.add(
      try loop.watch(pipe.reader, for: .read) { [loop] came in
        seen.add(came)
        box.values[0].cancel()
        loop.stop()
      }
    )
    pipe.put("x")
    run()
    #expect(seen.values == [.read])
    box.removeAll()
  }

  @Test func `a change of the interest has effect at once`() throws {
    let pair = try SocketPair()
    let seen = Recorder<IOInterest>()
    let box = Recorder<IOWatch>()
    box.add(
      try loop.watch(pair.left, for: []) { [loop] came in
        seen.add(came)
        if came.contains(.write) { box.values[0].interest = .read }
        if came.contains(.read) { loop.stop() }
      }
    )
    box.values[0].interest = .write
    pair.put("x")
    run()
    #expect(seen.values.last?.contains(.read) == true)
    #expect(seen.values.first?.contains(.write) == true)
    box.values[0].cancel()
    box.removeAll()
  }

  @Test func `a failed descriptor is always reported as hung up`() throws {
    let pipe = try Pipe()
    let seen = Recorder<IOInterest>()
    let watch = try loop.watch(pipe.writer, for: .write) { [loop] came in
      seen.add(came)
      loop.stop()
    }
    pipe.closeReader()
    run()
    #expect(seen.values.count == 1)
    #expect(seen.values.first?.contains(.hangUp) == true)
    watch.cancel()
  }

  @Test func `a descriptor's number may be used again after its watch was cancelled`() throws {
    let seen = Recorder<Int>()
    for round in 0..<3 {
      let pipe = try Pipe()
      let watch = try loop.watch(pipe.reader, for: .read) { [loop] _ in
        seen.add(round)
        loop.stop()
      }
      pipe.put("x")
      run()
      watch.cancel()
      pipe.closeBoth()
    }
    #expect(seen.values == [0, 1, 2])
  }

  @Test func `wake-ups from other threads arrive, several may count as one`() throws {
    let seen = Recorder<Int>()
    let total = Atomic(0)
    let waker = try loop.makeWaker { [unowned loop] in
      seen.add(total.load(ordering: .acquiring))
      if seen.values.last == 4000 { loop.stop() }
    }
    let threads = try (0..<4).map { _ in
      try WorkerThread {
        for _ in 0..<1000 {
          total.add(1, ordering: .releasing)
          waker.wake()
        }
      }
    }
    run()
    threads.forEach { $0.join() }
    #expect(seen.values.last == 4000)
    #expect(seen.values.count <= 4000)
  }

  @Test func `waking a released loop has no effect`() throws {
    var other: EventLoop? = try EventLoop()
    let waker = try #require(try other?.makeWaker {})
    other = nil
    waker.wake()
    #expect(other == nil)
  }

  @Test func `signals are delivered on the loop`() throws {
    let seen = Recorder<Int32>()
    try loop.onSignal(SIGUSR2) { [unowned loop] in
      seen.add(SIGUSR2)
      loop.stop()
    }
    kill(getpid(), SIGUSR2)
    run()
    #expect(seen.values == [SIGUSR2])
  }

  @Test func `the end of a batch precedes sleeping, and may arm the next timer`() throws {
    let order = Recorder<String>()
    let timer = try loop.makeTimer { [unowned loop] in
      order.add("timer")
      loop.stop()
    }
    loop.afterBatch = {
      if order.values.isEmpty { timer.arm(at: EventLoop.now()) }
      order.add("batch")
    }
    run()
    #expect(order.values.prefix(2) == ["batch", "timer"])
  }

  @Test func `a loop with nothing due does not wake up`() throws {
    let timer = try loop.makeTimer {}
    timer.arm(at: EventLoop.now().advanced(by: .seconds(3600)))
    let batches = Recorder<Void>()
    let end = try loop.makeTimer { [loop] in loop.stop() }
    loop.afterBatch = { batches.add(()) }
    end.arm(at: EventLoop.now().advanced(by: .milliseconds(50)))
    run()
    // One before the only sleep; the loop is stopped in the batch that ends it.
    #expect(batches.values.count == 1)
  }

  @Test func `cancelling a timer may release, and so cancel, another one`() throws {
    let fired = Recorder<Int>()
    func makeHolder() throws -> LoopTimer {
      let inner = try loop.makeTimer { fired.add(1) }
      inner.arm(at: .zero)
      return try loop.makeTimer { withExtendedLifetime(inner) {} }
    }
    try makeHolder().cancel()
    let end = try loop.makeTimer { [loop] in loop.stop() }
    end.arm(at: EventLoop.now())
    run()
    #expect(fired.values.isEmpty)
  }

  @Test func `timers that hold each other are released with their loop`() throws {
    var token: Token? = Token()
    weak let witness = token
    do {
      let other = try EventLoop()
      let box = Recorder<LoopTimer>()
      let held = token
      for _ in 0..<2 {
        box.add(try other.makeTimer { withExtendedLifetime((box, held)) {} })
      }
    }
    token = nil
    #expect(witness == nil)
  }

  @Test func `released loops free their handlers and descriptors`() async {
    // In a separate process, whose descriptors no other test opens or closes. The runtime's own
    // threads open a few of them at any time, so a hundred leaks are told from those.
    await #expect(processExitsWith: .success) {
      // The library keeps some for all loops of a process.
      _ = try EventLoop()
      let before = openDescriptors()
      for _ in 0..<100 {
        var token: Token? = Token()
        weak let witness = token
        do {
          let other = try EventLoop()
          let pipe = try Pipe()
          defer { pipe.closeBoth() }
          let held = token
          _ = try other.watch(pipe.reader, for: .read) { _ in withExtendedLifetime(held) {} }
          _ = try other.makeWaker { withExtendedLifetime(held) {} }
        }
        token = nil
        #expect(witness == nil)
      }
      let after = openDescriptors()
      #expect(after < before + 50, "\(before) before, \(after) after")
    }
  }
}

private final class Token {}
