// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import FoundationEssentials
import JSON
import LastOut
import Testing
import Values
@testable import Configuration

struct ProfileTests {
  /// Loads the text of a device file, with optional files in `profiles/`.
  private func registry(
    _ devices: String,
    profiles: String? = nil,
    settings: String? = nil
  ) throws -> Registry {
    let (outcome, folder) =
      if let profiles {
        try Loading.run(
          settings: settings,
          devices: ["d.yaml": devices, "profiles/own.yaml": profiles]
        )
      } else {
        try Loading.run(settings: settings, devices: ["d.yaml": devices])
      }
    switch outcome {
    case .loaded(let loaded): return loaded.registry
    case .refused(let problems):
      try #require(problems.isEmpty, "\(Loading.lines(problems, in: folder))")
      throw CancellationError()
    }
  }

  private func property(_ key: String, in registry: Registry) throws -> Property {
    registry[try registry.index(of: key)].property
  }

  /// The payload for a value in text form.
  private func payload(_ text: String, _ property: Property) throws -> String {
    var bytes: [UInt8] = []
    let value = try property.value(from: .string(text))
    property.command.payload.render(property.wireValue(of: value), into: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test(arguments: [
    ("zigbee2mqtt/light", "power", "on", "x/y/set", #"{"state":"ON"}"#),
    ("zigbee2mqtt/light", "brightness", "254", "x/y/set", #"{"brightness":254}"#),
    ("zigbee2mqtt/light", "color_temp", "300", "x/y/set", #"{"color_temp":300}"#),
    ("zigbee2mqtt/light", "color", "#ff0000", "x/y/set", #"{"color":{"x":0.64,"y":0.33}}"#),
    ("zigbee2mqtt/switch", "state", "0", "x/y/set", #"{"state":"OFF"}"#),
    ("zigbee2mqtt/cover", "position", "30", "x/y/set", #"{"position":30}"#),
    ("zigbee2mqtt/cover", "command", "STOP", "x/y/set", #"{"state":"STOP"}"#),
    (
      "zigbee2mqtt/thermostat", "target_temperature", "21.5", "x/y/set",
      #"{"occupied_heating_setpoint":21.5}"#
    ),
    ("zigbee2mqtt/thermostat", "mode", "off", "x/y/set", #"{"system_mode":"off"}"#),
    ("tasmota/relay", "power", "on", "cmnd/x/y/POWER", "ON"),
    ("tasmota/dimmer", "brightness", "40", "cmnd/x/y/Json", #"{"Dimmer":40}"#),
    ("tasmota/ct-light", "ct", "200", "cmnd/x/y/Json", #"{"CT":200}"#),
    ("tasmota/color-light", "color", "#00ff00", "cmnd/x/y/Json", #"{"Color2":"0,255,0"}"#),
    ("tasmota/shutter", "position", "70", "cmnd/x/y/ShutterPosition1", "70"),
    ("shelly/gen1-relay", "power", "off", "x/y/relay/0/command", "off"),
    ("shelly/gen1-light", "brightness", "5", "x/y/light/0/set", #"{"brightness":5}"#),
    ("shelly/gen1-roller", "command", "STOP", "x/y/roller/0/command", "stop"),
    (
      "shelly/gen2-light", "power", "on", "x/y/rpc",
      #"{"id":1,"src":"settle","method":"Light.Set","params":{"id":0,"on":true}}"#
    ),
    (
      "shelly/gen2-cover", "command", "STOP", "x/y/rpc",
      #"{"id":1,"src":"settle","method":"Cover.Stop","params":{"id":0}}"#
    ),
    ("wled/light", "color", "#FF8800", "x/y/api", #"{"seg":{"col":[[255,136,0]]}}"#),
    ("zwave-js/dimmer", "level", "99", "x/y/38/0/targetValue/set", "99"),
    ("zwave-js/switch", "power", "on", "x/y/37/0/targetValue/set", "true"),
    ("homeassistant/light", "color", "#ff8800", "x/y/rgb/set", "255,136,0"),
    (
      "homeassistant/light-json", "brightness", "40", "x/y/set",
      #"{"state":"ON","brightness":40}"#
    ),
    ("homeassistant/light-json", "brightness", "0", "x/y/set", #"{"state":"OFF","brightness":0}"#),
    (
      "homeassistant/light-json", "color", "#ff8800", "x/y/set",
      #"{"state":"ON","color":{"r":255,"g":136,"b":0}}"#
    ),
  ])
  func `a shipped profile sends the messages of its convention`(
    profile: String,
    id: String,
    text: String,
    topic: String,
    sent: String
  ) throws {
    let registry = try registry("d: {profile: \(profile), topic: x/y}")
    let property = try property("d/\(id)", in: registry)
    #expect(property.command.topic == topic)
    #expect(try payload(text, property) == sent)
  }

  @Test func `parameters are expanded in topics, pointers and payloads`() throws {
    let registry = try registry(
      """
      a: {profile: tasmota/relay, topic: x, parameters: {relay: 2}}
      b: {profile: shelly/gen2-switch, topic: y, parameters: {channel: 3}}
      c: {profile: esphome/light, topic: z, parameters: {object: lamp}}
      e: {profile: homie/number, topic: homie/5/d, parameters: {node: n, property: p}}
      """
    )
    let relay = try property("a/power", in: registry)
    #expect(relay.command.topic == "cmnd/x/POWER2")
    #expect(relay.states.map(\.topic) == ["stat/x/RESULT", "tele/x/STATE"])
    #expect(relay.states.map(\.value.text) == ["/POWER2", "/POWER2"])
    #expect(relay.state?.get == StateRequest(topic: "cmnd/x/POWER2", payload: []))
    let shelly = try property("b/power", in: registry)
    #expect(try payload("on", shelly).contains(#""params":{"id":3,"on":true}"#))
    #expect(shelly.state?.topic == "y/status/switch:3")
    #expect(try property("c/power", in: registry).command.topic == "z/light/lamp/command")
    #expect(registry.devices[3].availability[0].topic == "homie/5/d/$state")
    let value = try property("e/value", in: registry)
    #expect(value.states.map(\.topic) == ["homie/5/d/n/p", "homie/5/d/n/p/$target"])
    #expect(value.states.map(\.acknowledges) == [false, true])
    #expect(registry.devices[3].availability[0].isOnline(in: "lost") == false)
  }

  @Test func `every shipped profile is embedded and valid`() throws {
    let folder = Loading.root + "/devices/profiles"
    let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    #expect(files == EmbeddedProfiles.files.map { "\($0.name).yaml" }.sorted())
    let names = ProfileStore(problems: Problems()).names
    #expect(names.count >= 44)
    for name in names {
      let parameters =
        switch name.prefix(while: { $0 != "/" }) {
        case "esphome": ", parameters: {object: o}"
        case "homie": ", parameters: {node: n, property: p}"
        case "victron": ", parameters: {path: p}"
        default: ""
        }
      // This profile has no properties.
      let added =
        name == "zigbee2mqtt/device"
        ? ", properties: {x: {type: text, command: {topic: $topic/set}}}" : ""
      let registry = try registry(
        "d: {profile: \(name), topic: x\(parameters)\(added)}"
      )
      #expect(!registry.properties.isEmpty, "\(name)")
    }
  }

  @Test func `a device overrides field by field, restricts, removes and adds`() throws {
    let registry = try registry(
      """
      d:
        profile: zigbee2mqtt/light
        topic: t
        properties:
          brightness: {range: [10, 100], command: {qos: 0}, state: {get: none}}
          color: none
          power: {state: none, confirm: none}
          color_temp: {policy: {delay: 1s}, excludes: []}
          effect: {type: choice, values: [blink], command: {topic: $topic/set, payload: {effect: $value}}}
      """
    )
    #expect(
      registry.devices[0].properties.map(\.id) == [
        "power", "brightness", "color_temp", "color_mode", "effect",
      ]
    )
    let brightness = try property("d/brightness", in: registry)
    #expect(brightness.kind == .integer(NumberRule(range: 10...100, step: 1)))
    #expect(brightness.command.qos == 0)
    #expect(brightness.command.topic == "t/set")
    #expect(brightness.state?.topic == "t")
    #expect(brightness.state?.get == nil)
    #expect(try property("d/power", in: registry).state == nil)
    #expect(try property("d/power", in: registry).confirm == nil)
    let white = try property("d/color_temp", in: registry)
    #expect(white.policy == Policy(delay: .seconds(1), maxWait: .seconds(2)))
    #expect(white.excludes.isEmpty)
  }

  @Test(
    arguments: [
      ("", "0 to 100 %", "2000 to 6667 K"),
      // The profile's display is for its own numbers.
      ("brightness: {range: [0, 100]}", "0 to 100", "2000 to 6667 K"),
      ("brightness: {unit: lm}", "0 to 254 lm", "2000 to 6667 K"),
      ("brightness: {display: none}", "0 to 254", "2000 to 6667 K"),
      ("brightness: {display: {unit: x}}", "0 to 100 x", "2000 to 6667 K"),
      ("color_temp: {range: [200, 400]}", "0 to 100 %", "2500 to 5000 K"),
    ]
  )
  func `people read a lamp in percent and kelvin`(
    own: String,
    brightness: String,
    white: String
  ) throws {
    let registry = try registry(
      "d: {profile: zigbee2mqtt/light, topic: t, properties: {\(own)}}"
    )
    let rule = try #require(try property("d/brightness", in: registry).kind.numberRule)
    #expect(rule.shownAllowed == brightness)
    let other = try #require(try property("d/color_temp", in: registry).kind.numberRule)
    #expect(other.shownAllowed == white)
  }

  @Test func `another type does not inherit the profile's range`() throws {
    let registry = try registry(
      "d: {profile: zigbee2mqtt/light, topic: t, properties: {brightness: {type: choice, values: [low]}}}"
    )
    #expect(try property("d/brightness", in: registry).kind == .choice(["low"]))
  }

  @Test func `policies are inherited field by field`()
    throws
  {
    let registry = try registry(
      """
      d:
        profile: own/dial
        topic: t
        properties: {a: {policy: {leading: true}}, c: {policy: live}}
      """,
      profiles: """
        own/dial:
          properties:
            a: &a {type: number, policy: {delay: 1s}, command: {topic: $topic/a}}
            b: {type: number, command: {topic: $topic/b}}
            c: *a
            e: {type: text, command: {topic: $topic/e}}
            f: {type: number, policy: {max_wait: none}, command: {topic: $topic/f}}
            g: {type: number, policy: {min_interval: 1s}, command: {topic: $topic/g}}
        """,
      settings: "devices: ../devices\npolicy: {number: {max_wait: 5s, min_interval: 50ms}}"
    )
    #expect(
      try ["a", "b", "c", "e", "f", "g"].map { try property("d/\($0)", in: registry).policy } == [
        Policy(
          delay: .seconds(1),
          maxWait: .seconds(5),
          leading: true,
          minInterval: .milliseconds(50)
        ),
        Policy(
          delay: .milliseconds(300),
          maxWait: .seconds(5),
          minInterval: .milliseconds(50)
        ),
        .live,
        Policy(delay: .milliseconds(20)),
        Policy(delay: .milliseconds(300), minInterval: .milliseconds(50)),
        Policy(delay: .milliseconds(300), maxWait: .seconds(5), minInterval: .seconds(1)),
      ]
    )
  }

  @Test func `a profile beside the device files replaces the embedded one`() throws {
    let registry = try registry(
      "d: {profile: wled/light, topic: t}",
      profiles: "wled/light: {properties: {x: {type: text, command: {topic: $topic/x}}}}"
    )
    #expect(registry.properties.map(\.key) == ["d/x"])
  }

  @Test func `an unknown profile is reported with the known conventions`() throws {
    let (outcome, folder) = try Loading.run(devices: [
      "d.yaml": "d: {profile: my/lamp, topic: t}",
      "profiles/p.yaml": "lamp: {properties: {x: {type: text, command: {topic: t}}}}",
    ])
    guard case .refused(let problems) = outcome else {
      Issue.record("The files were taken.")
      return
    }
    let line = Loading.lines(problems, in: folder).first
    #expect(line?.contains(" lamp, ") == true)
    #expect(line?.contains(" tasmota/…, ") == true)
  }

  @Test func `a profile that builds on itself is rejected`() throws {
    let (outcome, folder) = try Loading.run(devices: [
      "d.yaml": "d: {profile: a/b, topic: t}",
      "profiles/p.yaml": "a/b: {profile: a/c}\na/c: {profile: a/b}",
    ])
    guard case .refused(let problems) = outcome else {
      Issue.record("The files were taken.")
      return
    }
    #expect(
      Loading.lines(problems, in: folder) == ["p.yaml:2:16: profile 'a/b' builds on itself"]
    )
  }

  @Test func `an unknown key in an unused profile is a mistake`() throws {
    let (outcome, folder) = try Loading.run(devices: [
      "profiles/p.yaml": "a/b: {properties: {x: {type: text, command: {topc: t}}}}"
    ])
    guard case .refused(let problems) = outcome else {
      Issue.record("The file was taken.")
      return
    }
    #expect(
      Loading.lines(problems, in: folder) == [
        "p.yaml:1:46: unknown key 'topc'; allowed: topic, payload, qos, retain; "
          + "did you mean 'topic'?"
      ]
    )
  }

  @Test func `a device file with another extension causes a warning`() throws {
    let (outcome, folder) = try Loading.run(devices: ["d.yml": Loading.lamp])
    guard case .loaded(let loaded) = outcome else {
      Issue.record("The files were refused.")
      return
    }
    #expect(
      Loading.lines(loaded.warnings, in: folder) == [
        "d.yml: the file is not read: names of device files end in .yaml"
      ]
    )
  }

  @Test func `excludes is symmetric`() throws {
    let registry = try registry(
      """
      d:
        properties:
          a: {type: text, command: {topic: a}, excludes: [b]}
          b: {type: text, command: {topic: b}}
      """
    )
    #expect(try property("d/b", in: registry).excludes == ["a"])
  }

  @Test func `implies states values of other properties, by any of their names`() throws {
    let registry = try registry(
      """
      d:
        properties:
          level:
            type: integer
            range: [0, 100]
            command: {topic: a}
            implies: {state: on, mode: "off", limit: 50%}
          power: {type: boolean, aliases: [state], state: {topic: b}}
          mode: {type: choice, values: [off, heat], command: {topic: c}}
          limit: {type: integer, range: [0, 10], command: {topic: e}}
      """
    )
    #expect(
      try property("d/level", in: registry).implies == [
        Implication(property: "power", value: .boolean(true)),
        Implication(property: "mode", value: .text("off")),
        Implication(property: "limit", value: .number(5)),
      ]
    )
    #expect(try property("d/mode", in: registry).implies.isEmpty)
  }

  @Test(arguments: [
    ("implies: {power: false}", "", [Implication(property: "power", value: .boolean(false))]),
    ("implies: {}", "", []),
    // A property that the device does not have takes no value.
    ("", "power: none", []),
    ("", "", [Implication(property: "power", value: .boolean(true))]),
  ])
  func `a device overrides what its profile implies`(
    level: String,
    other: String,
    implied: [Implication]
  ) throws {
    let registry = try registry(
      """
      d: {profile: lamp, topic: t, properties: {level: {\(level)}, \(other)}}
      """,
      profiles: """
        lamp:
          properties:
            power: {type: boolean, command: {topic: $topic/p}}
            level: {type: integer, command: {topic: $topic/l}, implies: {power: true}}
        """
    )
    #expect(try property("d/level", in: registry).implies == implied)
  }

  @Test(arguments: [
    ("zigbee2mqtt/light", ["brightness"]),
    ("homeassistant/light-json", ["brightness", "color_temp", "color"]),
    ("homeassistant/light", []), ("wled/light", []), ("zwave-js/dimmer", []),
    ("shelly/gen1-light", []), ("shelly/gen2-light", []), ("tasmota/relay", []),
    ("tasmota/color-light", ["brightness", "color_temp", "color"]),
  ])
  func `a shipped profile says which commands turn a lamp on`(
    profile: String,
    ids: [String]
  ) throws {
    let registry = try registry("d: {profile: \(profile), topic: x}")
    let properties = registry.devices[0].properties
    #expect(properties.filter { !$0.implies.isEmpty }.map(\.id) == ids)
    for property in properties where !property.implies.isEmpty {
      #expect(property.implies == [Implication(property: "power", value: .boolean(true))])
    }
  }

  @Test(arguments: [
    ("", #"{"state":"AN","brightness":40}"#),
    // Without the property, or what implies it, there is nothing to carry.
    ("properties: {power: none}", #"{"brightness":40}"#),
    ("properties: {brightness: {implies: {}}}", #"{"brightness":40}"#),
  ])
  func `a device changes what a command of its profile carries`(
    fields: String,
    sent: String
  ) throws {
    let fields = fields.isEmpty ? "properties: {power: {on: AN}}" : fields
    let registry = try registry("d: {profile: homeassistant/light-json, topic: x, \(fields)}")
    #expect(try payload("40", try property("d/brightness", in: registry)) == sent)
  }

  @Test func `what a device of a template implies has the item of its own`() throws {
    let registry = try registry(
      """
      d-$n:
        for: [hall, attic]
        properties:
          level: {type: integer, command: {topic: $n/l}, implies: {room: $n, source: $n}}
          room: {type: text, command: {topic: $n/r}}
          source: {type: choice, values: [$n, none], command: {topic: $n/s}}
      """
    )
    #expect(
      try property("d-attic/level", in: registry).implies == [
        Implication(property: "room", value: .text("attic")),
        Implication(property: "source", value: .text("attic")),
      ]
    )
  }
}
