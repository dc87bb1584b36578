// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import Import
import JSON
import Simulation
import TestBroker
import Testing
import Values

/// Import of what Shelly devices reply when they are asked.
///
/// The fixture has the members of announcements that devices made, and of
/// `shelly_plus_rgbw_pm.json` of ha-shellies-discovery-gen2; models are those of aioshelly's
/// `const.py`.
struct ShellyTests {
  private static func device(_ id: String) throws -> Device {
    let file = try #require(try Fixture.plan(Fixture.messages("shelly.txt")).files.first)
    return try #require(try Loaded.devices(["a.yaml": file.text]).first { $0.id == id })
  }

  @Test(arguments: [
    (
      "shellyswitch25-98cdac38e9f5", "power_2", "on",
      "shellies/shellyswitch25-98CDAC38E9F5/relay/1/command on"
    ),
    (
      "shellyswitch25-98cdac000001", "position", "30",
      "shellies/shellyswitch25-98CDAC000001/roller/0/command/pos 30"
    ),
    (
      "shellydimmer2-98cdac000002", "brightness", "30",
      #"shellies/shellydimmer2-98CDAC000002/light/0/set {"brightness":30}"#
    ),
    (
      "shellyrgbw2-000004", "color", "#ff8800",
      #"shellies/shellyrgbw2-000004/color/0/set {"red":255,"green":136,"blue":0}"#
    ),
    (
      "shellyrgbw2-000004", "brightness", "30",
      #"shellies/shellyrgbw2-000004/color/0/set {"gain":30}"#
    ),
    (
      "shellyrgbw2-000005", "brightness_4", "30",
      #"shellies/shellyrgbw2-000005/white/3/set {"brightness":30}"#
    ),
    (
      "shellybulb-000006", "color", "#ff8800",
      #"shellies/ShellyBulb-000006/color/0/set {"mode":"color","red":255,"green":136,"blue":0}"#
    ),
    (
      "shellybulb-000006", "color_temp", "4000",
      #"shellies/ShellyBulb-000006/color/0/set {"mode":"white","temp":4000}"#
    ),
    (
      "shellytrv-000007", "target_temperature", "31",
      "shellies/shellytrv-000007/thermostat/0/command/target_t 31"
    ),
    (
      "shellyplusrgbwpm-aabbccddeeff", "color", "#ff8800",
      #"shellyplusrgbwpm-aabbccddeeff/rpc {"id":1,"src":"settle","method":"RGBW.Set","params":{"id":0,"rgb":[255,136,0]}}"#
    ),
    (
      "keller", "power_2", "off",
      #"haus/keller/rpc {"id":1,"src":"settle","method":"Switch.Set","params":{"id":1,"on":false}}"#
    ),
  ])
  func `a command has the form of the device's generation and component`(
    id: String,
    property: String,
    text: String,
    sent: String
  ) throws {
    let found = try #require(try Self.device(id).properties.first { $0.id == property })
    let value = try found.value(fromPayload: Array(text.utf8).span)
    var bytes: [UInt8] = []
    found.command.payload.render(found.wireValue(of: value), into: &bytes)
    #expect("\(found.command.topic) \(String(decoding: bytes, as: UTF8.self))" == sent)
  }

  @Test func `names, makers and presence are kept, and the rest is listed`() throws {
    let cellar = try Self.device("keller")
    #expect(cellar.properties.map(\.name) == ["Pumpe", nil])
    #expect(cellar.availability.map(\.topic) == ["haus/keller/online"])
    let roller = try Self.device("shellyswitch25-98cdac000001")
    #expect(roller.details?.manufacturer == "Shelly" && roller.details?.model == "SHSW-25")
    #expect(roller.details?.url == "http://192.168.1.52/")
    let dimmer = try Self.device("shellydimmer2-98cdac000002")
    #expect(dimmer.merge && dimmer.options == ["transition"])
    let second = dimmer.option(JSONValue.Member("transition", 1.5))
    #expect(second == JSONValue.Member("transition", 1500))
    #expect(dimmer.option(JSONValue.Member("other", 1.5)).value == 1.5)
    #expect(
      try Fixture.diagnostics(Fixture.messages("shelly.txt")) == [
        "left_out: shellyht-98CDAC000003: the model 'SHHT-1' has nothing to set, or is not supported",
        "partly: shellyplusrgbwpm-aabbccddeeff: its status notifications are off, so that changes "
          + "by hand are not seen",
        "left_out: Taster: it has no component that can be set",
      ]
    )
    let present = [Announcement(topic: "shellies/x/online", text: "true")]
    #expect(
      try Fixture.diagnostics(present) == [
        "left_out: Shelly: they announce themselves only when asked, see --ask"
      ]
    )
  }

  @Test func `each device that is online is asked once`() {
    var questions = ShellyQuestions()
    func asked(_ topic: String, _ text: String) -> [String] {
      questions.questions(after: Announcement(topic: topic, text: text)).map {
        "\($0.topic) \(String(decoding: $0.payload, as: UTF8.self))"
      }
    }
    #expect(
      asked("haus/keller/online", "true") == [
        #"haus/keller/rpc {"id":1,"src":"settle-import","method":"Shelly.GetDeviceInfo"}"#,
        #"haus/keller/rpc {"id":2,"src":"settle-import","method":"Shelly.GetConfig"}"#,
      ]
    )
    #expect(asked("haus/keller/online", "true") == [])
    #expect(asked("other/online", "false") == [])
    #expect(asked("shellies/x/online", "true") == [])
    #expect(questions.first.topic == "shellies/command")
  }
}

/// Imported Shelly devices of both generations that are driven, and that are changed by hand.
@Suite(.blocking) struct ShellyScenarios {
  @Test func `devices are asked only with --ask`() throws {
    let home = try ImportHome([Announcement(topic: "plus1/online", text: "true")])
    #expect(try home.settled(["import"]).code == 0)
    #expect(home.client.texts(on: "shellies/command") == [])
    #expect(try home.settled(["import", "--ask"]).code == 0)
    #expect(home.client.waitFor { $0.contains { $0.topic == "plus1/rpc" } })
    #expect(home.client.texts(on: "shellies/command") == ["announce"])
    #expect(home.client.texts(on: "plus1/rpc").count == 2)
  }

  @Test func `an imported dimmer and color lamp confirm, and report what is done by hand`() throws {
    let messages = try Fixture.messages("shelly.txt")
    // Of a retained topic one message stays.
    let home = try ImportHome([messages[2], messages[5]])
    #expect(try home.settled(["import"]).code == 0)
    let checked = try home.settled(["check"])
    #expect(checked.code == 0, "\(checked.output)\(checked.errors)")
    try home.startGateway()
    let stage = DeviceStage(home.client)
    let (first, later) = ("shellydimmer2-98CDAC000002", "shellyplusrgbwpm-aabbccddeeff")
    stage.add(
      ShellyFirst.device("shellies/\(first)", parts: ["light/0": ShellyFirst.light]),
      as: "first"
    )
    stage.add(ShellyRPC.device(later, parts: ["rgbw:0": ShellyRPC.whiteColorLight]), as: "later")
    stage.comeUp("first")
    stage.comeUp("later")
    let keys = ["\(first.lowercased())/brightness", "\(later)/color", "\(later)/white"]
    let dimmer = first.lowercased()
    home.client.publish("settle/\(dimmer)/set", #"{"brightness":33,"transition":0.1}"#)
    home.client.publish("settle/\(keys[1])/set", "#00ff00")
    home.client.publish("settle/\(keys[2])/set", "77")
    for key in keys {
      #expect(
        stage.waitFor { messages in
          messages.last { $0.topic == "settle/\(key)/event" }?.text.contains("confirmed") == true
        },
        "\(key): \(home.client.texts(on: "settle/\(key)/event"))"
      )
    }
    // A transition is in seconds here, and in milliseconds for the device.
    #expect(
      home.client.texts(on: "shellies/\(first)/light/0/set")
        == [#"{"brightness":33,"transition":100}"#]
    )
    // By hand.
    home.client.publish("shellies/\(first)/light/0/set", #"{"brightness":12}"#)
    #expect(
      stage.waitFor { messages in
        messages.last { $0.topic == "settle/\(keys[0])" }?.text == "12"
      }
    )
  }

  @Test(arguments: ["shellyrgbw2-000004", "ShellyBulb-000006"])
  func `an imported color lamp of the first generation confirms, and reports what is done by hand`(
    name: String
  ) throws {
    let announced = try Fixture.messages("shelly.txt").filter {
      String(decoding: $0.payload, as: UTF8.self).contains(name)
    }
    let home = try ImportHome(announced)
    #expect(try home.settled(["import"]).code == 0)
    try home.startGateway()
    let stage = DeviceStage(home.client)
    stage.add(
      ShellyFirst.device("shellies/\(name)", parts: ["color/0": ShellyFirst.color]),
      as: "lamp"
    )
    stage.comeUp("lamp")
    let key = "\(name.lowercased())/color"
    home.client.publish("settle/\(key)/set", "#00ff00")
    #expect(
      stage.waitFor { messages in
        messages.last { $0.topic == "settle/\(key)/event" }?.text.contains("confirmed") == true
      },
      "\(home.client.texts(on: "settle/\(key)/event"))"
    )
    // By hand.
    home.client.publish(
      "shellies/\(name)/color/0/set",
      #"{"red":255,"green":0,"blue":255}"#
    )
    #expect(
      stage.waitFor { messages in
        messages.last { $0.topic == "settle/\(key)" }?.text.contains("#ff00ff") == true
      },
      "\(home.client.texts(on: "settle/\(key)"))"
    )
  }
}
