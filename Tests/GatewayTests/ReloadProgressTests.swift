// Settle
// SPDX-License-Identifier: Apache-2.0

import Values
import Devices
import JSON
import LastOut
import Testing

@testable import Configuration
@testable import Gateway

/// The host's part of a reload: its steps, and a connection between two of them.
@Suite struct ReloadProgressTests {
  /// Devices `d0`, `d1` … with a `level` whose state is requested.
  private static func devices(_ count: Int) -> [Device] {
    (0..<count).map { number in
      var level = Property(
        id: "level",
        kind: .boolean,
        policy: .standard,
        command: .init(topic: "d\(number)/set", payload: PayloadTemplate("$value"))
      )
      level.state = StateSource(
        topic: "d\(number)/state",
        value: .whole,
        get: StateRequest(topic: "d\(number)/get", payload: [])
      )
      return Device(id: "d\(number)", name: "d\(number)", properties: [level])
    }
  }

  /// A reload from one device to `count`.
  private static func progress(_ count: Int) -> ReloadProgress {
    let configuration = GatewayConfiguration()
    let old = Registry(devices(1))
    let base = PreparedReload.Base(
      configuration: configuration,
      registry: old,
      subscriptions: TopicSubscriptions(
        configuration: configuration,
        registry: old,
        announcer: nil
      ),
      announcer: nil
    )
    let loaded = LoadedConfiguration(
      gateway: configuration,
      registry: Registry(devices(count)),
      files: [],
      profileFiles: [],
      warnings: []
    )
    return ReloadProgress(PreparedReload(loaded, continuing: base), replacing: old)
  }

  @Test(arguments: [
    (ReloadProgress.Phase.mapping, [1, 2]),
    (.preparing, [1, 2]),
    (.subscribing, []),  // The connection has requested the states of all devices.
  ])
  func `new states are requested once the topic map names them`(
    phase: ReloadProgress.Phase,
    requests: [Int32]
  ) {
    let progress = Self.progress(3)
    progress.phase = phase
    progress.connectionChanged()
    #expect(progress.requests.map(\.rawValue) == requests)
  }

  @Test func `the map is built in steps, and finds every topic at the end`() {
    let progress = Self.progress(1000)
    var steps = 1
    while !progress.buildMap() { steps += 1 }
    #expect(steps == 8)  // 250 of 1,000 keys, then 250 of 1,000 devices.
    for number in [0, 999] {
      #expect(progress.topics.roles(of: "d\(number)/state".utf8.span).count == 1)
      let get = "settle/d\(number)/get"
      #expect(progress.topics.commandRole(of: get.utf8.span, in: progress.prepared.registry) != nil)
    }
  }
}
