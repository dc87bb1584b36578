// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import LastOut
import LastOutTesting
import Testing

/// What was sent when a flush returns: every form of task, and every way to flush.
@Suite struct ExitTableTests {
  /// A way to run what is pending before a program ends.
  enum Exit: CaseIterable {
    case flush
    case flushAll
    case flushAllWithTimeout
    case executePendingTasks
    case drain
  }

  private let log = Log()

  @Test(arguments: TaskForm.allCases, Exit.allCases)
  func `everything was sent when it returns`(form: TaskForm, exit: Exit) async {
    let sender = form.sender(log)
    for key in ["a", "b"] { sender.enqueue(key) }
    #expect(await sender.exitOnOwnThread(exit) == [])
    #expect(log.lines.sorted() == ["a", "b"])
    #expect(sender.pendingCount() == 0)
  }

  @Test(arguments: TaskForm.allCases, Exit.allCases)
  func `a run in flight and the value behind it were sent too`(form: TaskForm, exit: Exit) async {
    let sender = form.sender(log)
    sender.enqueueNow("a")
    while !sender.isRunning("a"), log.lines.isEmpty { try? await Task.sleep(for: .milliseconds(1)) }
    sender.enqueue("a")
    sender.enqueue("b")
    #expect(await sender.exitOnOwnThread(exit) == [])
    #expect(log.lines.sorted() == ["a", "a", "b"])
  }

  @Test(arguments: [TaskForm.plain, .values, .main, .mainValues, .mainExecutor], Exit.allCases)
  @MainActor
  func `on the main thread everything is sent that does not suspend`(
    form: TaskForm,
    exit: Exit
  ) async {
    let sender = form.sender(log)
    for key in ["a", "b"] { sender.enqueue(key) }
    #expect(await sender.exit(exit) == [])
    #expect(log.lines.sorted() == ["a", "b"])
  }

  @Test(arguments: TaskForm.allCases)
  func `a flush with a timeout returns, and names what is left, whatever blocks`(
    form: TaskForm
  ) async {
    let gate = Gate()
    let sender = form.sender(log, gate: form.blocksMainThread ? nil : gate)
    for key in ["a", "b", "hung"] { sender.enqueue(key) }
    var late = await OwnThread.run { sender.flushAll(.milliseconds(50)) }
    // The others may need several timeouts, unless the one that hangs is in their way.
    for _ in 0..<1000 where late.count > 1 && !form.isSerial {
      late = await OwnThread.run { sender.flushAll(.milliseconds(50)) }
    }
    #expect(form.blocksMainThread || late.contains("hung"))
    if !form.isSerial { #expect(late == ["hung"]) }
    gate.open()
    await sender.drain()
    #expect(log.lines.sorted() == ["a", "b", "hung"])
  }

  @Test @MainActor
  func `on the main thread a task of the main actor in flight is sent too`() {
    let queue = LastOutQueue()
    queue.enqueue(forKey: "label", delay: .zero) { @MainActor [log] in log("label") }
    while !queue.isRunning(forKey: "label") {}
    #expect(queue.executePendingTasks() == [])
    #expect(log.lines == ["label"])
  }

  @Test func `a sequence that ends has delivered its last element before it ends`() async {
    let changes = AsyncStream { continuation in
      for value in 1...3 { continuation.yield(value) }
      continuation.finish()
    }
    for await value in changes.settled(by: .standard) { log("\(value)") }
    #expect(log.lines == ["3"])
  }

  @Test func `a program that exits after executePendingTasks has sent everything`() async throws {
    let result = await #expect(
      processExitsWith: .exitCode(7),
      observing: [\.standardOutputContent]
    ) {
      let queue = LastOutQueue()
      queue.enqueue(forKey: "lamp") {
        try await Task.sleep(for: .milliseconds(50))
        FileHandle.standardOutput.write(Data("sent".utf8))
      }
      queue.executePendingTasks()
      Foundation.exit(7)
    }
    let text = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
    #expect(text.hasSuffix("sent"))
  }

  @Test func `on a test clock a flush waits for its tasks until one sleeps`() async {
    let clock = LastOutTestClock()
    let queue = clock.queue()
    queue.enqueue(forKey: "a") { [log] in
      await Task.yield()
      log("a")
    }
    #expect(queue.flush(forKey: "a") == .ran)
    #expect(log.lines == ["a"])
    let sleeping = queue.enqueue(forKey: "b") { [log] in
      try await clock.sleep(for: .seconds(5))
      log("b")
    }
    #expect(queue.flushAll() == ["b"])
    clock.advance(by: .seconds(5))
    _ = await sleeping.outcome
    #expect(log.lines == ["a", "b"])
  }
}

/// The forms of tasks and handlers.
enum TaskForm: CaseIterable {
  case plain, values, asynchronous, asynchronousValues, main, mainAsynchronous, mainValues
  case queueExecutor, queueExecutorAsynchronous, mainExecutor, mainExecutorAsynchronous
  case taskExecutor, taskExecutorAsynchronous, oneThread

  /// Whether a task that blocks holds up other keys.
  var isSerial: Bool {
    switch self {
    case .main, .mainValues, .queueExecutor, .mainExecutor: true
    default: false
    }
  }

  /// Whether a task that blocks holds up the main thread, where other tests run.
  var blocksMainThread: Bool {
    switch self {
    case .main, .mainValues, .mainExecutor: true
    default: false
    }
  }

  func sender(_ log: Log, gate: Gate? = nil) -> Sender {
    let policy = Policy(delay: .seconds(3600))
    let plain: @Sendable (String) -> Void = { key in
      if key == "hung" { gate?.pass() }
      log(key)
    }
    let asynchronous: @Sendable (String) async throws -> Void = { key in
      try await Task.sleep(for: .milliseconds(5))
      if key == "hung" { await gate?.pass() }
      log(key)
    }
    let onMain: @Sendable @MainActor (String) -> Void = { key in
      MainActor.preconditionIsolated()
      plain(key)
    }
    switch self {
    case .plain: return Sender(LastOutQueue(policy: policy), plain)
    case .oneThread:
      return Sender(LastOutQueue(policy: policy, executor: .threads(limit: 1)), plain)
    case .asynchronous: return Sender(LastOutQueue(policy: policy), asynchronous)
    case .main: return Sender(LastOutQueue(policy: policy), onMain: onMain)
    case .mainAsynchronous:
      return Sender(LastOutQueue(policy: policy)) { @MainActor key in
        MainActor.preconditionIsolated()
        try await asynchronous(key)
      }
    case .values:
      return Sender(LastOutValueQueue(policy: policy) { key, _, _ in plain(key) })
    case .asynchronousValues:
      return Sender(LastOutValueQueue(policy: policy) { key, _, _ in try await asynchronous(key) })
    case .mainValues:
      return Sender(LastOutValueQueue(policy: policy) { @MainActor key, _, _ in onMain(key) })
    case .queueExecutor, .queueExecutorAsynchronous:
      let serial = DispatchQueue(label: "serial")
      let queue = LastOutQueue(policy: policy, executor: .queue(serial))
      if self == .queueExecutorAsynchronous {
        return Sender(queue) { key in
          dispatchPrecondition(condition: .onQueue(serial))
          try await asynchronous(key)
        }
      }
      return Sender(queue) { (key: String) -> Void in
        dispatchPrecondition(condition: .onQueue(serial))
        plain(key)
      }
    case .mainExecutor:
      return Sender(LastOutQueue(policy: policy, executor: .mainActor)) { (key: String) -> Void in
        MainActor.assumeIsolated { onMain(key) }
      }
    case .mainExecutorAsynchronous:
      return Sender(LastOutQueue(policy: policy, executor: .mainActor)) { key in
        dispatchPrecondition(condition: .onQueue(.main))
        try await asynchronous(key)
        dispatchPrecondition(condition: .onQueue(.main))
      }
    case .taskExecutor:
      let executor = LastOutExecutor.executor(globalConcurrentExecutor)
      return Sender(LastOutQueue(policy: policy, executor: executor), plain)
    case .taskExecutorAsynchronous:
      let executor = LastOutExecutor.executor(globalConcurrentExecutor)
      return Sender(LastOutQueue(policy: policy, executor: executor), asynchronous)
    }
  }
}

/// A queue of any form that sends keys.
struct Sender: Sendable {
  let enqueue: @Sendable (String) -> Void
  let enqueueNow: @Sendable (String) -> Void
  let flush: @Sendable (String) -> FlushOutcome
  let flushAll: @Sendable (Duration?) -> [String]
  let executePendingTasks: @Sendable () -> [String]
  let drain: @Sendable () async -> Void
  let pendingCount: @Sendable () -> Int
  let isRunning: @Sendable (String) -> Bool

  init(_ queue: LastOutQueue, _ send: @escaping @Sendable (String) -> Void) {
    self.init(queue) { key, delay in queue.enqueue(forKey: key, delay: delay) { send(key) } }
  }

  init(_ queue: LastOutQueue, _ send: @escaping @Sendable (String) async throws -> Void) {
    self.init(queue) { key, delay in
      queue.enqueue(forKey: key, delay: delay) { try await send(key) }
    }
  }

  init(_ queue: LastOutQueue, onMain send: @escaping @Sendable @MainActor (String) -> Void) {
    self.init(queue) { key, delay in
      queue.enqueue(forKey: key, delay: delay) { @MainActor in send(key) }
    }
  }

  init(_ queue: LastOutValueQueue<String, Int>) {
    self.init(queue) { key, delay in queue.enqueue(1, forKey: key, delay: delay) }
  }

  private init<Value>(
    _ queue: LastOutValueQueue<String, Value>,
    enqueue: @escaping @Sendable (String, Duration?) -> Void
  ) {
    self.enqueue = { enqueue($0, nil) }
    enqueueNow = { enqueue($0, .zero) }
    flush = { queue.flush(forKey: $0) }
    flushAll = { queue.flushAll(timeout: $0) }
    executePendingTasks = { queue.executePendingTasks() }
    drain = { await queue.drain() }
    pendingCount = { queue.pendingCount }
    isRunning = { queue.isRunning(forKey: $0) }
  }

  /// ``exit(_:)`` on a thread of its own, so that the threads of Swift's pool stay free.
  func exitOnOwnThread(_ exit: ExitTableTests.Exit) async -> [String] {
    if exit == .drain { return await self.exit(exit) }
    return await OwnThread.run { blockingExit(exit) }
  }

  /// Flushes "a" and "b"; returns what is late.
  func exit(_ exit: ExitTableTests.Exit) async -> [String] {
    guard exit == .drain else { return blockingExit(exit) }
    await drain()
    return []
  }

  private func blockingExit(_ exit: ExitTableTests.Exit) -> [String] {
    switch exit {
    case .flush: ["a", "b"].filter { flush($0) != .ran }
    case .flushAllWithTimeout: flushAll(.seconds(3600))
    case .executePendingTasks: executePendingTasks()
    case .flushAll, .drain: flushAll(nil)
    }
  }
}

/// A thread that belongs to no pool.
enum OwnThread {
  static func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: body()) }
    }
  }
}

/// Holds those that pass until it opens.
final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  private let isOpen = Locked(false)

  func open() {
    isOpen.withLock { $0 = true }
    semaphore.signal()
  }

  func pass() {
    semaphore.wait()
    semaphore.signal()
  }

  func pass() async {
    while !isOpen.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(1)) }
  }
}
