// Settle
// SPDX-License-Identifier: Apache-2.0

import Values
import Devices
import JSON
import HomeAssistant
import LastOut
import Testing

@testable import Configuration
@testable import Gateway

/// Command topics, which are split at their slashes and stored nowhere.
@Suite struct CommandTopicTests {
  private static let registry: Registry = {
    var level = Property(
      id: "level",
      kind: .boolean,
      policy: .standard,
      command: .init(topic: "d/set", payload: PayloadTemplate("$value"))
    )
    level.aliases = ["dim"]
    return Registry([Device(id: "d", name: "d", properties: [level])])
  }()

  /// What a topic below a base of two levels means, as text; `nil` for nothing.
  private static func meaning(of topic: String, withDiscovery: Bool = false) -> String? {
    var configuration = GatewayConfiguration()
    configuration.baseTopic = "home/settle"
    let announcer = DiscoveryAnnouncer(
      baseTopic: configuration.baseTopic,
      configuration: DiscoveryConfiguration(),
      version: "1"
    )
    let map = TopicMap(
      configuration: configuration,
      registry: registry,
      announcer: withDiscovery ? announcer : nil
    )
    #expect(map.roles(of: topic.utf8.span).isEmpty)
    return map.commandRole(of: topic.utf8.span, in: registry).map { role in
      switch role {
      case .command(.set): "set"
      case .command(.step): "step"
      case .command(.toggle): "toggle"
      case .command(.flush): "flush"
      case .command(.cancel): "cancel"
      case .command(.deviceSet): "set of the device"
      case .command(.light): "set of the lamp"
      case .deviceGet: "get of the device"
      case .command(.scene), .command(.input), .state, .availability, .awake, .busy, .status,
        .marker:
        "another"
      }
    }
  }

  @Test(arguments: ["set", "step", "toggle", "flush", "cancel"])
  func `a key's topics are known by its name and its alias`(verb: String) {
    #expect(Self.meaning(of: "home/settle/d/level/\(verb)") == verb)
    #expect(Self.meaning(of: "home/settle/d/dim/\(verb)") == verb)
  }

  @Test func `with discovery a lamp has a topic below its property's`() {
    let topic = "home/settle/d/level/light/set"
    #expect(Self.meaning(of: topic, withDiscovery: true) == "set of the lamp")
    #expect(Self.meaning(of: topic) == nil)
    for other in ["d/level/light/step", "d/other/light/set", "d/light/set", "d/level/lights/set"] {
      #expect(Self.meaning(of: "home/settle/\(other)", withDiscovery: true) == nil)
    }
  }

  @Test func `a device has topics of its own`() {
    #expect(Self.meaning(of: "home/settle/d/set") == "set of the device")
    #expect(Self.meaning(of: "home/settle/d/get") == "get of the device")
  }

  @Test(
    arguments: [
      "home/settle/d/other/set", "home/settle/e/level/set", "home/settle/d/level/get",
      "home/settle/d/level/sets", "home/settle/d/level/", "home/settle/d/level", "home/settle/d",
      "home/settle/d/step", "home/settle//set", "home/settle/set", "home/settle/", "home/settl",
      "home/settled/d/set", "settle/d/set", "home/settle/d/level/x/set", "/", "",
    ]
  )
  func `any other topic is no command`(topic: String) {
    #expect(Self.meaning(of: topic) == nil)
  }
}
