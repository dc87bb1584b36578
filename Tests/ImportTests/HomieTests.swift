// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import Import
import Testing

/// Import of Homie 5 descriptions.
struct HomieTests {
  private func description(_ property: String) -> [Announcement] {
    let text = #"{"homie":"5.0","name":"D","nodes":{"n":{"properties":{"p":\#(property)}}}}"#
    return [Announcement(topic: "homie/5/d/$description", text: text)]
  }

  @Test func `an installation's descriptions are imported and the rest is reported`() throws {
    let plan = try Fixture.plan(Fixture.messages("homie.txt"))
    let devices = try Loaded.devices(["a.yaml": try #require(plan.files.first).text])
    #expect(devices.map(\.id) == ["lichtbruecke", "led-streifen-kueche", "thermostat-diele"])
    #expect(!devices[0].properties.contains { !$0.isReadOnly })
    #expect(
      devices[1].availability.map(\.topic) == [
        "homie/5/strip-1/$state", "homie/5/light-bridge/$state",
      ]
    )
    #expect(
      devices[2].properties.filter { !$0.isReadOnly }.map(\.command.topic) == [
        "homie/5/thermo-01/climate/target/set", "homie/5/thermo-01/climate/mode/set",
        "homie/5/thermo-01/climate/boost/set", "homie/5/thermo-01/device/locked/set",
        "homie/5/thermo-01/device/offset/set", "homie/5/thermo-01/device/label/set",
        "homie/5/thermo-01/device/limit/set",
      ]
    )
    #expect(
      plan.diagnostics.filter { $0.kind != .diagnostic }.map {
        "\($0.kind.rawValue): \($0.subject)"
      }
        == [
          "refused: homie/5/old", "left_out: LED-Streifen Küche: strip/tint",
          "left_out: Thermostat Diele: device/schedule", "partly: Thermostat Diele: device/limit",
        ]
    )
  }

  @Test(arguments: [
    (#"{"datatype":"float","format":"0:1:0.1","settable":true}"#, "type: number"),
    (#"{"datatype":"float","format":"0:1","settable":true}"#, "type: number"),
    (#"{"datatype":"float","format":"0:10:1","settable":true}"#, "type: number"),
    (#"{"datatype":"integer","format":"0:9:3","settable":true}"#, "step: 3"),
    (#"{"datatype":"boolean","settable":true}"#, "type: boolean"),
    (#"{"datatype":"enum","format":"a,b c","settable":true}"#, "values: [a, b c]"),
    (#"{"datatype":"color","format":"hsv,rgb","settable":true}"#, #"encode: "rgb,r,g,b""#),
    (#"{"datatype":"color","format":"xyz,hsv","settable":true}"#, #"encode: "hsv,h,s,v""#),
    (#"{"datatype":"duration","settable":true}"#, "type: text"),
    (#"{"datatype":"boolean","settable":true,"retained":false}"#, "values: {press: true}"),
  ])
  func `each datatype becomes its property type`(property: String, line: String) throws {
    #expect(try Fixture.file(description(property)).contains(line))
  }

  @Test(arguments: [
    (#"{"datatype":"integer","format":"a:b","settable":true}"#, "its format 'a:b' is not a range"),
    (#"{"datatype":"enum","settable":true}"#, "an enum whose format lists no values"),
    (#"{"datatype":"hologram","settable":true}"#, "its datatype 'hologram' is not supported"),
    (#"{"datatype":"json","settable":true}"#, "a JSON structure"),
  ])
  func `everything that is skipped is reported with the reason`(property: String, reason: String)
    throws
  {
    #expect(try Fixture.diagnostics(description(property)) == ["left_out: D: n/p: \(reason)"])
  }
}
