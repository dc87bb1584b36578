// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Testing

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

  @Test func `a template reports its form`() {
    #expect(PayloadTemplate(.object(["a": "$value"])).isObject)
    #expect(!PayloadTemplate("$value").isObject)
    #expect(PayloadTemplate("$value").carriesValue)
    #expect(!PayloadTemplate(.object(["a": 1])).carriesValue)
  }
}
