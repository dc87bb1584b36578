// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Engine
import LastOut
import Operations
import TestBroker
import Testing

/// An event loop with engines on it, as members of a cluster have them.
final class EngineHarness {
  let loop: EventLoop
  private let timer: LoopTimer
  private var condition: (() -> Bool)?

  init() throws {
    let loop = try EventLoop()
    self.loop = loop
    timer = try loop.makeTimer { loop.stop() }
    loop.afterBatch = { [unowned self] in if condition?() ?? false { self.loop.stop() } }
  }

  deinit { loop.afterBatch = nil }

  /// Runs the loop until a condition holds, checked after each batch of events; `false` if it takes
  /// too long.
  func run(within limit: Duration = .patience, until condition: @escaping () -> Bool) -> Bool {
    if condition() { return true }
    self.condition = condition
    defer {
      timer.arm(at: nil)
      self.condition = nil
    }
    var wait = Wait(within: limit)
    while let left = wait.remaining() {
      timer.arm(at: EventLoop.now().advanced(by: left))
      loop.run()
      if condition() { return true }
    }
    return false
  }

  static func settings(
    _ server: NATSServer,
    replicas: Int = 1,
    partitions: Int = 8
  ) -> EngineSettings {
    settings([server], replicas: replicas, partitions: partitions)
  }

  static func settings(
    _ servers: [NATSServer],
    replicas: Int = 1,
    partitions: Int = 8
  ) -> EngineSettings {
    var settings = EngineSettings(
      cluster: "test",
      connection: NATSSettings(servers: servers.map(\.url), name: "settle-test")
    )
    settings.replicas = replicas
    settings.partitions = partitions
    return settings
  }

  func engine(_ settings: EngineSettings, member: String = "a") throws -> ClusterEngine {
    try ClusterEngine(settings, member: member, loop: loop, log: Logger { _ in })
  }

  /// An engine that is ready.
  func ready(_ settings: EngineSettings, member: String = "a") throws -> ClusterEngine {
    let engine = try engine(settings, member: member)
    engine.start()
    try #require(run { engine.isReady }, "\(engine.problem ?? "no problem")")
    return engine
  }

  /// The answer to one call.
  func answer<Answer>(_ call: (@escaping (Answer) -> Void) -> Void) throws -> Answer {
    var found: Answer?
    call { found = $0 }
    try #require(run { found != nil })
    return try #require(found)
  }
}
