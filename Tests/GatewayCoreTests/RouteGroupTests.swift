// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Testing

@testable import Routing

/// Commands for a group of Zigbee2MQTT and for its members, which take different topics.
@Suite struct RouteGroupTests {
  private static let devices = """
    [{"ieee_address":"0x00","type":"Coordinator","friendly_name":"Coordinator","definition":null},
     {"definition":{"exposes":[{"name":"state","friendly_name":"no","values":["ON","}"]}]},
      "friendly_name":"l1","ieee_address":"0x01","endpoints":{"1":{"bindings":[{"ieee_address":"0x00"}]}}},
     {"ieee_address":"0x02","friendly_name":"room/l2"}, {"ieee_address":"0x03","friendly_name":"l3"}]
    """
  private static let groups = """
    [{"friendly_name":"all","id":7,"members":[{"endpoint":1,"ieee_address":"0x01"},
      {"ieee_address":"0x02","endpoint":11}],"scenes":[{"id":3,"name":"evening"}]},
     {"id":8,"friendly_name":"hall","members":[{"ieee_address":"0x01","endpoint":1},
      {"ieee_address":"0x03","endpoint":1}],"scenes":[]}]
    """

  /// A machine with the routes that stand between automations and Zigbee2MQTT.
  private static func bench(
    limit: Int = 100,
    announces: Bool = true,
    _ adjust: (inout RouteConfiguration) -> Void = { $0.mergesJSON = true }
  ) -> RouteBench {
    var bench = RouteBench(
      routes: ["+", "room/+"].map { name in
        var route = RouteConfiguration(
          from: .init(topic: "z2m/\(name)/set"),
          to: .init(topic: "direct/\(name)/set"),
          policy: Policy(delay: .milliseconds(300))
        )
        route.wordDelay = .milliseconds(20)
        route.pass = [.payload(Array("TOGGLE".utf8))]
        route.urgent = [.payload(Array("STOP".utf8))]
        adjust(&route)
        return route
      } + [
        RouteConfiguration(
          from: .init(topic: "z2m/+/set/+"),
          to: .init(topic: "direct/+/set/+"),
          policy: nil
        )
      ],
      limit: limit
    )
    if announces { bench.announce(devices: devices, groups: groups) }
    return bench
  }

  @Test(arguments: ["OFF", #"{"state":"OFF"}"#, #"{"brightness":0}"#, #"{"brightness":10}"#])
  func `a member's older value does not follow the group's newer one`(command: String) {
    var bench = Self.bench()
    bench.receive(#"{"brightness":200}"#, on: "z2m/l1/set")
    bench.pass(100)
    bench.receive(command, on: "z2m/all/set")
    bench.pass(300)
    #expect(bench.leave() == ["direct/all/set \(command)"])
    bench.pass(300)
    #expect(bench.leave() == [])
    #expect(bench.machine.statistics.collapsed == 1)
    #expect(bench.machine.isDrained == true)
  }

  @Test(
    arguments: ["z2m/all/set", "z2m/7/set"],
    ["z2m/l1/set", "z2m/0x01/set", "z2m/room/l2/set"]
  )
  func `names, addresses and numbers mean the same device or group`(group: String, member: String) {
    var bench = Self.bench()
    bench.receive(#"{"brightness":200}"#, on: member)
    bench.receive("OFF", on: group)
    bench.pass(300)
    #expect(bench.leave().count == 1)
  }

  @Test func `without an announcement, and for devices that are no members, nothing ends`() {
    for (announces, topic) in [(false, "z2m/l1/set"), (true, "z2m/l3/set")] {
      var bench = Self.bench(announces: announces)
      bench.receive(#"{"brightness":200}"#, on: topic)
      bench.receive("OFF", on: "z2m/all/set")
      bench.pass(300)
      #expect(bench.leave().count == 2)
    }
  }

  @Test func `what the group's command leaves open is sent, and cannot turn the lamp on`() {
    var bench = Self.bench()
    bench.receive(
      #"{"state":"ON","brightness":200,"color_temp":300,"transition":2}"#,
      on: "z2m/l1/set"
    )
    bench.receive(#"{"state":"OFF"}"#, on: "z2m/all/set")
    bench.pass(300)
    #expect(
      bench.leave().sorted() == [
        #"direct/all/set {"state":"OFF"}"#, #"direct/l1/set {"color_temp":300,"transition":2}"#,
      ]
    )
  }

  @Test func `a lamp that was turned off alone stays in the group that is turned on`() {
    var bench = Self.bench()
    bench.receive(#"{"brightness":200}"#, on: "z2m/l1/set")
    bench.receive("ON", on: "z2m/all/set")
    bench.pass(20)
    #expect(bench.leave() == ["direct/all/set ON"])
    bench.pass(280)
    #expect(bench.leave() == [#"direct/l1/set {"brightness":200}"#])
  }

  @Test func `a scene of the group ends every value of its members`() {
    var bench = Self.bench {
      $0.mergesJSON = true
      $0.pass = [JSONPointer("/scene_recall")].compactMap { $0.map(MessagePattern.member) }
    }
    bench.receive(#"{"brightness":200,"color":{"x":0.1,"y":0.2}}"#, on: "z2m/l1/set")
    bench.receive(#"{"scene_recall":3}"#, on: "z2m/all/set")
    #expect(bench.leave() == [#"direct/all/set {"scene_recall":3}"#])
    bench.pass(300)
    #expect(bench.leave() == [])
  }

  @Test func `a member's newer value follows the group's older one, whose quiet period ends`() {
    var bench = Self.bench()
    bench.receive(#"{"brightness":10}"#, on: "z2m/all/set")
    bench.pass(100)
    bench.receive("OFF", on: "z2m/l1/set")
    bench.pass(20)
    let group = bench.publishes()
    #expect(group.map(\.topic) == ["direct/all/set"])
    for publish in group { bench.machine.finish(publish.number, .lost) }
    #expect(bench.leave() == [#"direct/all/set {"brightness":10}"#])
    #expect(bench.leave() == ["direct/l1/set OFF"])
    #expect(bench.machine.isDrained == true)
  }

  @Test func `a step of the group follows the member's older value`() {
    var bench = Self.bench {
      $0.mergesJSON = true
      $0.pass = [JSONPointer("/brightness_step")].compactMap { $0.map(MessagePattern.member) }
    }
    bench.receive(#"{"brightness":200}"#, on: "z2m/l1/set")
    bench.receive(#"{"brightness_step":20}"#, on: "z2m/all/set")
    #expect(bench.leave() == [#"direct/l1/set {"brightness":200}"#])
    #expect(bench.leave() == [#"direct/all/set {"brightness_step":20}"#])
  }

  @Test func `of two groups that share a member, the older one is sent first`() {
    var bench = Self.bench()
    bench.receive(#"{"brightness":200}"#, on: "z2m/hall/set")
    bench.receive("OFF", on: "z2m/all/set")
    bench.receive(#"{"brightness":100}"#, on: "z2m/hall/set")
    #expect(bench.leave() == ["direct/all/set OFF"])
    bench.pass(300)
    #expect(bench.leave() == [#"direct/hall/set {"brightness":100}"#])
  }

  @Test func `a lost message is not repeated after the group's newer one`() {
    var bench = Self.bench()
    bench.receive(#"{"brightness":200,"color_temp":300}"#, on: "z2m/l1/set")
    bench.receive("55", on: "z2m/l1/set/brightness")
    bench.pass(300)
    let leaving = bench.publishes()
    #expect(leaving.count == 2)
    bench.receive("OFF", on: "z2m/all/set")
    bench.pass(20)
    #expect(bench.leave() == ["direct/all/set OFF"])
    for publish in leaving { bench.machine.finish(publish.number, .lost) }
    #expect(bench.leave() == [#"direct/l1/set {"color_temp":300}"#])
    #expect(bench.machine.isDrained == true)
  }

  @Test func `a payload that is not merged is sent before the group's or not at all`() {
    var bench = Self.bench { _ in }
    bench.receive(#"{"brightness":200,"color_temp":300}"#, on: "z2m/l1/set")
    bench.receive(#"{"brightness":200}"#, on: "z2m/room/l2/set")
    bench.receive("OFF", on: "z2m/all/set")
    bench.pass(20)
    #expect(bench.leave() == [#"direct/l1/set {"brightness":200,"color_temp":300}"#])
    #expect(bench.leave() == ["direct/all/set OFF"])
    bench.pass(300)
    #expect(bench.leave() == [])
  }

  @Test func `an urgent message of the group drops the position of a member`() {
    var bench = Self.bench()
    bench.receive(#"{"position":40}"#, on: "z2m/l1/set")
    bench.receive("STOP", on: "z2m/all/set")
    #expect(bench.leave() == ["direct/all/set STOP"])
    bench.pass(300)
    #expect(bench.leave() == [])
  }

  @Test func `values of a group and a member that alternate do not fill the memory`() {
    var bench = Self.bench(limit: 10)
    for value in 0..<100 {
      #expect(bench.receive("{\"brightness\":\(value)}", on: "z2m/all/set") == .accepted)
      #expect(bench.receive("{\"brightness\":\(value)}", on: "z2m/l1/set") == .accepted)
    }
    #expect(bench.machine.waitingCount == 1)
    bench.pass(300)
    #expect(bench.leave() == [#"direct/all/set {"brightness":99}"#])
    #expect(bench.leave() == [#"direct/l1/set {"brightness":99}"#])
  }

  @Test func `groups that are announced later, or no more, count from then on`() {
    var bench = Self.bench(announces: false)
    bench.receive(#"{"brightness":200}"#, on: "z2m/l1/set")
    bench.announce(devices: Self.devices, groups: Self.groups)
    bench.receive("OFF", on: "z2m/all/set")
    bench.pass(300)
    #expect(bench.leave() == ["direct/all/set OFF"])
    bench.announce(devices: Self.devices, groups: "[]")
    bench.receive(#"{"brightness":200}"#, on: "z2m/l1/set")
    bench.receive("OFF", on: "z2m/all/set")
    bench.pass(300)
    #expect(bench.leave().count == 2)
  }

  @Test func `an announcement that is cut anywhere, or says something else, does no harm`() {
    var bench = Self.bench(announces: false)
    for text in [Self.devices, Self.groups] {
      for length in 0...text.utf8.count {
        let part = String(decoding: text.utf8.prefix(length), as: UTF8.self)
        bench.announce(devices: part, groups: part)
      }
    }
    for text in ["", "}}]]", "{\"\\", "[[{\"members\":[{\"ieee_address\":\"x", "null", "[{},{}]"] {
      bench.announce(devices: text, groups: text)
      bench.receive("OFF", on: "z2m/all/set")
    }
    bench.pass(300)
    #expect(bench.leave() == ["direct/all/set OFF"])
  }

  @Test(arguments: [
    (["zigbee2mqtt/+/set"], ["zigbee2mqtt"]),
    (["home/z2m/+/set", "home/z2m/room/lamp/set"], ["home/z2m"]),
    (["z2m/room/lamp/set"], ["z2m", "z2m/room"]),
    (["local/#"], ["local"]),
    (["fast/+/out", "+/set", "#", "set", "lamp/set", "fast/out"], []),
  ])
  func `groups are announced below the base topic that routes lead to`(
    outputs: [String],
    bases: [String]
  ) {
    let routes = outputs.map {
      RouteConfiguration(from: .init(topic: "x/\($0)"), to: .init(topic: $0), policy: .standard)
    }
    #expect(RouteGroups.sources(of: routes).map(\.base) == bases)
  }
}
