// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import LastOut
import Testing

/// The five programs of docs/library.md, each followed by its expected result.
@Suite struct ProgramSamples {
  private let log = Log()

  @Test @MainActor func `a view model with a slider`() {
    @MainActor final class LampModel {
      private let queue = LastOutQueue(policy: .live)
      private(set) var sent: [Int] = []
      var brightness = 0 {
        didSet { send(brightness) }
      }

      private func send(_ brightness: Int) {
        queue.enqueue(forKey: "brightness") { @MainActor in self.sent.append(brightness) }
      }

      /// Call it when the view disappears.
      func finish() { queue.flushAll() }
    }
    let model = LampModel()
    for brightness in 1...40 { model.brightness = brightness }
    model.finish()
    #expect(model.sent.last == 40)
  }

  @Test func `an actor that drives a device`() async {
    actor Dimmer {
      private let queue = LastOutQueue(policy: Policy(delay: .milliseconds(20)))
      private(set) var brightness = 0

      @discardableResult
      func dim(to brightness: Int) -> LastOutRun {
        queue.enqueue(forKey: "brightness") { await self.send(brightness) }
      }

      private func send(_ brightness: Int) async { self.brightness = brightness }
    }
    let dimmer = Dimmer()
    for brightness in 1...39 { await dimmer.dim(to: brightness) }
    let run = await dimmer.dim(to: 40)
    guard case .completed = await run.outcome else { return _ = Issue.record("not completed") }
    #expect(await dimmer.brightness == 40)
  }

  @Test func `a server with 100,000 keys`() async {
    let stored = Locked<[Int: Double]>([:])
    let store: @Sendable (Int, Double) throws -> Void = { sensor, value in
      stored.withLock { $0[sensor] = value }
    }
    let queue = LastOutValueQueue<Int, Double>(
      policy: Policy(delay: .milliseconds(50), maxWait: .seconds(1)),
      onError: { [log] sensor, value, error in log("\(sensor): \(value), \(error)") },
      handler: { sensor, value, _ in try store(sensor, value) }
    )
    for sensor in 0..<100_000 { queue.enqueue(20.5, forKey: sensor) }
    await queue.drain()  // Before the server stops.
    #expect(stored.withLock { $0.count } == 100_000)
    #expect(log.lines.isEmpty)
  }

  private static func commandLine() {
    let queue = LastOutQueue()
    signal(SIGTERM, SIG_IGN)  // The source receives it instead.
    let source = DispatchSource.makeSignalSource(signal: SIGTERM, queue: .global())
    source.setEventHandler {
      let late = queue.flushAll(timeout: .seconds(5))
      exit(late.isEmpty ? 0 : 1)
    }
    source.resume()
    queue.enqueue(forKey: "lamp") {
      try await Task.sleep(for: .milliseconds(20))
      FileHandle.standardOutput.write(Data("sent".utf8))
    }
    kill(getpid(), SIGTERM)
    sleep(60)
  }

  @Test func `a command line that ends on a signal`() async {
    let result = await #expect(
      processExitsWith: .exitCode(0),
      observing: [\.standardOutputContent]
    ) {
      Self.commandLine()
    }
    let text = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
    #expect(text.hasSuffix("sent"))
  }

  @Test func `a sequence of texts`() async {
    let typed = AsyncStream { continuation in
      for text in ["d", "de", "desk"] { continuation.yield(text) }
      continuation.finish()
    }
    for await text in typed.debounce(for: .milliseconds(300)) {
      log("search for \(text)")
    }
    #expect(log.lines == ["search for desk"])
  }
}
