// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Testing
import Values

struct PayloadTemplateTests {
  private func rendered(_ structure: JSONValue, _ wire: JSONValue) -> String {
    var bytes: [UInt8] = []
    PayloadTemplate(structure).render(wire, into: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test(
    arguments: [
      ("$value", "heat", "heat"), ("$value", true, "true"), ("$value", 40, "40"),
      ("$value", 40.1, "40.1"), ("$value", .object(["r": 1]), #"{"r":1}"#),
      (.object(["setpoint": "$value"]), 21.5, #"{"setpoint":21.5}"#),
      (.object(["a": ["$value", 1], "b": "$value"]), "x\"y", #"{"a":["x\"y",1],"b":"x\"y"}"#),
      (
        .object(["red": "$value/r", "rest": ["$value/b", "$value/x"]]),
        .object(["r": 1, "b": 2]), #"{"red":1,"rest":[2,null]}"#
      ),
      (.object(["a": "set $value"]), 1, #"{"a":"set $value"}"#),
      ("PRESS", 1, "PRESS"), (.object([]), 1, "{}"), (5, 1, "5"),
    ] as [(JSONValue, JSONValue, String)]
  )
  func `the value replaces its placeholder`(
    structure: JSONValue,
    wire: JSONValue,
    payload: String
  ) {
    #expect(rendered(structure, wire) == payload)
  }

  @Test func `the message number replaces its placeholder`() {
    let template = PayloadTemplate(.object(["id": "$id", "params": .object(["v": "$value"])]))
    var bytes: [UInt8] = []
    template.render(true, id: 77, into: &bytes)
    PayloadTemplate.render(merging: [(template, 1), (template, 2)], id: 78, into: &bytes)
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == #"{"id":77,"params":{"v":true}}{"id":78,"params":{"v":2}}"#
    )
    #expect(!PayloadTemplate(.object(["id": "$id"])).carriesValue)
  }

  @Test func `text cannot break out of its string`() {
    let text = #"","admin":true,"x":""#
    #expect(
      rendered(.object(["a": "$value"]), .string(text)) == #"{"a":"\",\"admin\":true,\"x\":\""}"#
    )
  }

  @Test func `merged properties share one object`() {
    var bytes: [UInt8] = []
    PayloadTemplate.render(
      merging: [
        (PayloadTemplate(.object(["state": "$value"])), "ON"),
        (PayloadTemplate(.object(["brightness": "$value"])), 128),
        (PayloadTemplate(.object(["color_temp": "$value"])), 300),
      ],
      options: [.init("transition", 2)],
      into: &bytes
    )
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == #"{"state":"ON","brightness":128,"color_temp":300,"transition":2}"#
    )
  }

  @Test func `nested objects are merged`() {
    var bytes: [UInt8] = []
    let on = JSONValue.object(["method": "Set", "params": .object(["id": 0, "on": "$value"])])
    let level = JSONValue.object([
      "method": "Set", "params": .object(["id": 0, "level": "$value"]),
    ])
    PayloadTemplate.render(
      merging: [(PayloadTemplate(on), true), (PayloadTemplate(level), 5)],
      into: &bytes
    )
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == #"{"method":"Set","params":{"id":0,"on":true,"level":5}}"#
    )
  }

  // MARK: - Values for other properties

  private static let reversed = Scale.linear(from: .init(0, 100), to: .init(100, 0), decimals: 0)

  /// What a lamp's brightness sends, and its power, whose words are ON and OFF.
  private static func lamp(
    scale: Scale? = nil
  ) -> (brightness: PayloadTemplate, color: PayloadTemplate, power: PayloadTemplate) {
    func property(_ id: String, _ kind: ValueKind, _ structure: JSONValue) -> Property {
      Property(
        id: id,
        kind: kind,
        policy: Policy(delay: .zero),
        command: CommandEndpoint(topic: "lamp/set", payload: PayloadTemplate(structure))
      )
    }
    let carried = JSONValue.string("$implies/power")
    var power = property("power", .boolean, .object(["state": "$value"]))
    power.wire.on = "ON"
    power.wire.off = "OFF"
    var level = property(
      "brightness",
      .integer(NumberRule(range: 0...100)),
      .object(["state": carried, "brightness": "$value"])
    )
    level.wire.scale = scale
    let color = property("color", .color, .object(["state": carried, "color": "$value"]))
    func template(_ property: Property) -> PayloadTemplate {
      let implied = Implication(property: "power", value: .boolean(true))
      let value = PayloadTemplate.Carried(implied, of: property, for: power)
      return property.command.payload.carrying(["power": value])
    }
    return (template(level), template(color), power.command.payload)
  }

  @Test(
    arguments: [
      (40, nil, #"{"state":"ON","brightness":40}"#), (0, nil, #"{"state":"OFF","brightness":0}"#),
      // The device has 100 where the value is 0.
      (100, Self.reversed, #"{"state":"OFF","brightness":100}"#),
      (0, Self.reversed, #"{"state":"ON","brightness":0}"#),
    ] as [(JSONValue, Scale?, String)]
  )
  func `a command carries the value that it implies, and with 0 the opposite`(
    wire: JSONValue,
    scale: Scale?,
    payload: String
  ) {
    let template = Self.lamp(scale: scale).brightness
    var bytes: [UInt8] = []
    template.render(wire, into: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == payload)
    bytes = []
    PayloadTemplate.render(
      merging: [(template, wire)],
      options: [.init("transition", 2)],
      into: &bytes
    )
    #expect(String(decoding: bytes, as: UTF8.self) == payload.dropLast() + #","transition":2}"#)
  }

  @Test(arguments: [false, true])
  func `a stated value counts more than an implied one, in any order`(isPowerFirst: Bool) {
    let (brightness, color, power) = Self.lamp()
    var parts: [(PayloadTemplate, JSONValue)] = [(brightness, 40), (color, "red"), (power, "OFF")]
    if isPowerFirst { parts.reverse() }
    var bytes: [UInt8] = []
    PayloadTemplate.render(merging: parts, into: &bytes)
    let levels =
      isPowerFirst ? #""color":"red","brightness":40"# : #""brightness":40,"color":"red""#
    #expect(String(decoding: bytes, as: UTF8.self) == #"{"state":"OFF",\#(levels)}"#)
  }

  @Test func `what is not implied is left out`() {
    let template = PayloadTemplate(
      .object(["state": "$implies/power", "list": ["$implies/mode", 1], "level": "$value"])
    )
    #expect(template.impliedNames == ["power", "mode"])
    var bytes: [UInt8] = []
    template.carrying([:]).render(5, into: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == #"{"list":[1],"level":5}"#)
    #expect(!PayloadTemplate(.object(["state": "$implies/power"])).carriesValue)
  }

  @Test func `a template reports its form`() {
    #expect(PayloadTemplate(.object(["a": "$value"])).isObject)
    #expect(!PayloadTemplate("$value").isObject)
    #expect(PayloadTemplate("$value").carriesValue)
    #expect(!PayloadTemplate(.object(["a": 1])).carriesValue)
  }
}
