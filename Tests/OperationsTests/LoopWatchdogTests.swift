// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import Synchronization
import TestBroker
import Testing

@Suite(.blocking) struct LoopWatchdogTests {
  /// The reports of a watchdog, for any thread.
  private final class Stalls: Sendable {
    struct Stall: Hashable {
      var what: String
      var elapsed: Duration
    }
    private let said = Mutex<[Stall]>([])
    /// Those of `names`; on a busy machine others may take long too.
    func all(_ names: String...) -> [Stall] {
      said.withLock { $0.filter { names.contains($0.what) } }
    }
    func add(_ what: String, _ elapsed: Duration) {
      said.withLock { $0.append(Stall(what: what, elapsed: elapsed)) }
    }
  }

  private let loop: EventLoop
  private let stalls = Stalls()

  init() throws { loop = try EventLoop() }

  /// Holds the thread, as a system call does that should not block.
  private static func block(_ milliseconds: Int) {
    let end = EventLoop.now().advanced(by: .milliseconds(milliseconds)).nanoseconds
    var time = timespec(tv_sec: Int(end / 1_000_000_000), tv_nsec: Int(end % 1_000_000_000))
    while unsafe clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
  }

  /// Holds the thread until the watchdog has reported `name`, and for some time more.
  private static func block(_ name: String, in stalls: Stalls) {
    var wait = Wait()
    while stalls.all(name).isEmpty, wait.remaining() != nil { block(5) }
    block(100)
  }

  private func watchdog(_ limit: Duration = .milliseconds(50)) throws -> LoopWatchdog {
    let stalls = stalls
    return try LoopWatchdog(loop, limit: limit) { stalls.add($0, $1) }
  }

  /// Runs the loop for a duration, with its other work.
  private func run(_ milliseconds: Int) throws {
    let end = try loop.makeTimer(named: "end") { [loop] in loop.stop() }
    end.arm(at: EventLoop.now().advanced(by: .milliseconds(milliseconds)))
    loop.run()
  }

  @Test(arguments: ["a timer's name", "a descriptor's name", "a waker's name", "a phase's name"])
  func `a blocking handler is reported by name, while it still blocks, and once`(
    name: String
  ) throws {
    let watchdog = try watchdog()
    let stalls = stalls
    var seenInside: [Stalls.Stall] = []
    let block = {
      Self.block(name, in: stalls)
      seenInside = stalls.all(name)
    }
    let pipe = try Pipe()
    let timer = try loop.makeTimer(named: "a timer's name") { [loop] in
      if name == "a phase's name" { loop.enter(loop.phase(name)) }
      block()
    }
    let watch = try loop.watch(pipe.reader, for: .read, named: "a descriptor's name") { _ in
      var byte: UInt8 = 0
      _ = unsafe read(pipe.reader, &byte, 1)
      block()
    }
    let waker = try loop.makeWaker(named: "a waker's name") { block() }
    switch name {
    case "a descriptor's name": pipe.put("x")
    case "a waker's name": waker.wake()
    default: timer.arm(at: .zero)
    }
    try run(200)
    watch.cancel()
    #expect(stalls.all(name).count == 1)
    #expect(seenInside == stalls.all(name))
    #expect(try #require(seenInside.first).elapsed >= .milliseconds(50))
    withExtendedLifetime(watchdog) {}
  }

  @Test func `each stall is reported`() throws {
    let watchdog = try watchdog()
    let stalls = stalls
    var runs = 0
    var timers: [LoopTimer] = []
    for number in 0..<40 {
      let timer = try loop.makeTimer(named: "number \(number)") {
        runs += 1
        if number == 10 || number == 30 { Self.block("number \(number)", in: stalls) }
      }
      timer.arm(at: EventLoop.now().advanced(by: .milliseconds(number * 20)))
      timers.append(timer)
    }
    try run(1200)
    #expect(runs == 40)
    #expect(stalls.all("number 10", "number 30").map(\.what) == ["number 10", "number 30"])
    withExtendedLifetime(watchdog) {}
  }

  @Test func `the work after a batch is watched too`() throws {
    let watchdog = try watchdog()
    let stalls = stalls
    var isFirst = true
    loop.afterBatch = {
      if isFirst { Self.block("after the batch", in: stalls) }
      isFirst = false
    }
    try run(10)
    #expect(stalls.all("after the batch").count == 1)
    withExtendedLifetime(watchdog) {}
  }

  @Test func `while the loop sleeps no thread is woken`() throws {
    let watchdog = try watchdog(.milliseconds(20))
    try run(1)
    var before = 0
    let first = try loop.makeTimer { before = watchdog.wakeUps }
    // The last look after the loop's first batch is over by then.
    first.arm(at: EventLoop.now().advanced(by: .milliseconds(100)))
    var after = 0
    let second = try loop.makeTimer { after = watchdog.wakeUps }
    second.arm(at: EventLoop.now().advanced(by: .milliseconds(600)))
    try run(620)
    // Some looks after each of the two batches at most, in twenty-five times the limit.
    #expect(after - before <= 4)
  }

  @Test func `a loop works without a watchdog, and after its watchdog is released`() throws {
    try run(1)
    var watchdog: LoopWatchdog? = try watchdog()
    try run(1)
    watchdog = nil
    #expect(watchdog == nil)
    let slow = try loop.makeTimer(named: "slow") { Self.block(90) }
    slow.arm(at: .zero)
    try run(100)
    #expect(stalls.all("slow").isEmpty)
  }

  @Test func `released watchdogs close their descriptors`() async {
    // In a separate process, whose descriptors no other test opens or closes. The runtime's own
    // threads open a few of them at any time, so a hundred leaks are told from those.
    await #expect(processExitsWith: .success) {
      let loop = try EventLoop()
      let descriptors = openDescriptors()
      for _ in 0..<100 {
        var watchdog: LoopWatchdog? = try LoopWatchdog(loop) { _, _ in }
        watchdog = nil
        #expect(watchdog == nil)
      }
      let after = openDescriptors()
      #expect(after < descriptors + 50, "\(descriptors) before, \(after) after")
    }
  }

  // MARK: - The service manager's watchdog

  /// A datagram socket such as the service manager's.
  private final class Manager {
    let path: String
    private let descriptor: Int32

    init() throws {
      path = "/tmp/settle-notify-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
      descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
      let size = socklen_t(MemoryLayout<sockaddr_un>.size)
      let code = unsafe withUnsafePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          unsafe bind(descriptor, $0, size)
        }
      }
      guard code == 0 else { throw SetUpFailure(code: errno) }
    }

    deinit {
      close(descriptor)
      unsafe unlink(path)
    }

    /// The messages since the last call.
    func take() -> [String] {
      var messages: [String] = []
      var bytes = [UInt8](repeating: 0, count: 256)
      while true {
        let count = unsafe recv(descriptor, &bytes, bytes.count, 0)
        guard count > 0 else { return messages }
        messages.append(String(decoding: bytes[..<count], as: UTF8.self))
      }
    }
  }

  @Test func `the service manager is fed by the loop, and not while the loop is blocked`() throws {
    let manager = try Manager()
    let path = manager.path
    var fed = 0
    let start = EventLoop.now()
    let feeding = try ServiceWatchdog(loop, every: .milliseconds(20)) { [loop] in
      Notify.send("WATCHDOG=1", to: path)
      fed += 1
      if fed == 6 { loop.stop() }
    }
    loop.run()
    #expect(manager.take() == Array(repeating: "WATCHDOG=1", count: 6))
    // At once, and then at distances of 20 ms.
    #expect(start.duration(to: EventLoop.now()) >= .milliseconds(100))

    var duringBlock: [String] = []
    let slow = try loop.makeTimer {
      _ = manager.take()
      Self.block(200)
      duringBlock = manager.take()
    }
    slow.arm(at: .zero)
    try run(300)
    #expect(duringBlock.isEmpty)
    #expect(!manager.take().isEmpty)
    withExtendedLifetime(feeding) {}
  }

  @Test func `nothing is fed once the feeding has been released`() throws {
    let manager = try Manager()
    let path = manager.path
    var feeding: ServiceWatchdog? = try ServiceWatchdog(loop, every: .milliseconds(5)) {
      Notify.send("WATCHDOG=1", to: path)
    }
    try run(20)
    #expect(feeding != nil)
    feeding = nil
    _ = manager.take()
    try run(50)
    #expect(manager.take().isEmpty)
  }

  @Test(
    arguments: [
      ([:], nil),
      (["WATCHDOG_USEC": "20000000"], .seconds(10)),
      (["WATCHDOG_USEC": "20000000", "WATCHDOG_PID": "\(getpid())"], .seconds(10)),
      (["WATCHDOG_USEC": "20000000", "WATCHDOG_PID": "1"], nil),
      (["WATCHDOG_USEC": "20000000", "WATCHDOG_PID": "?"], nil),
      (["WATCHDOG_USEC": "0"], nil), (["WATCHDOG_USEC": "-5"], nil), (["WATCHDOG_USEC": "x"], nil),
    ] as [([String: String], Duration?)]
  )
  func `the period is half of the service manager's, if it is for this process`(
    variables: [String: String],
    period: Duration?
  ) {
    #expect(ServiceWatchdog.period { variables[$0] } == period)
  }
}
