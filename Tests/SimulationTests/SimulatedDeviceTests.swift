// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Simulation
import Testing

@Suite struct SimulatedDeviceTests {
  @Test func `a lamp starts with its bridge, its availability and its retained state`() {
    var lamp = ZigbeeLamp(name: "desk_lamp", brightness: 100)
    let messages = lamp.start(at: .zero)
    #expect(
      messages.map(\.topic) == [
        "zigbee2mqtt/bridge/state", "zigbee2mqtt/desk_lamp/availability", "zigbee2mqtt/desk_lamp",
      ]
    )
    #expect(messages.allSatisfy { $0.retain })
  }

  @Test func `a lamp reports a command after the delay of its radio`() {
    var bench = VirtualBench(ZigbeeLamp(name: "lamp"))
    _ = bench.takeLog()
    bench.send(#"{"brightness":200,"state":"ON"}"#, to: "zigbee2mqtt/lamp/set", at: 10)
    bench.advance(to: 1000)
    #expect(
      bench.takeLog() == [
        #"50 zigbee2mqtt/lamp {"state":"ON","brightness":200,"color_mode":"color_temp","color_temp":370}"#
      ]
    )
  }

  @Test func `a lamp reports its state during a transition and at its end`() {
    var bench = VirtualBench(ZigbeeLamp(name: "lamp", brightness: 0))
    _ = bench.takeLog()
    bench.send(#"{"brightness":200,"transition":1}"#, to: "zigbee2mqtt/lamp/set", at: 0)
    bench.advance(to: 5000)
    let brightness = bench.takeLog().compactMap { line in
      line.split(separator: "\"brightness\":").last?.prefix { $0.isNumber }
    }
    #expect(brightness == ["0", "50", "100", "150", "200"])
  }

  @Test(arguments: [
    ("set", "OFF", false), ("set", "TOGGLE", false), ("set/state", "OFF", false),
    ("set", #"{"state":"OFF"}"#, false), ("set", #"{"brightness":0}"#, false),
    ("set", #"{"brightness":1}"#, true), ("set/brightness", "7", true),
  ])
  func `a lamp accepts words, attributes and objects`(
    topic: String,
    payload: String,
    isOn: Bool
  ) {
    var bench = VirtualBench(ZigbeeLamp(name: "lamp", isOn: true))
    bench.send(payload, to: "zigbee2mqtt/lamp/\(topic)", at: 0)
    bench.advance(to: 100)
    #expect(bench.device.isOn == isOn)
    #expect(bench.device.tally == CommandTally(received: 1))
  }

  @Test func `a lamp rejects an invalid payload and keeps its state`() {
    var bench = VirtualBench(ZigbeeLamp(name: "lamp", brightness: 100))
    _ = bench.takeLog()
    bench.send("brighter", to: "zigbee2mqtt/lamp/set", at: 0)
    bench.advance(to: 1000)
    #expect(bench.takeLog().map { $0.split(separator: " ")[1] } == ["zigbee2mqtt/bridge/logging"])
    #expect(bench.device.brightness(at: bench.now) == 100)
    #expect(bench.device.tally == CommandTally(received: 1, refused: 1))
  }

  @Test func `a flooded thermostat ends at a value that is not the last one`() {
    var bench = VirtualBench(SlowThermostat(topic: "heating/boiler", setpoint: 20))
    for tap in 1...10 {
      bench.send(
        #"{"setpoint":\#(20 + Double(tap) * 0.5)}"#,
        to: "heating/boiler/set",
        at: tap * 200
      )
    }
    bench.advance(to: 10_000)
    #expect(bench.device.setpoint == 25)
    #expect(bench.device.tally == CommandTally(received: 10, dropped: 6))
  }

  @Test func `a thermostat confirms a single command after a second`() {
    var bench = VirtualBench(SlowThermostat(topic: "heating/boiler", setpoint: 20))
    _ = bench.takeLog()
    bench.send(#"{"setpoint":21.5}"#, to: "heating/boiler/set", at: 0)
    bench.advance(to: 5000)
    #expect(
      bench.takeLog() == [#"1000 heating/boiler {"setpoint":21.5,"temperature":20.5}"#]
    )
  }

  @Test func `a cover moves over time and reports its position`() {
    var bench = VirtualBench(MovingCover(name: "blind", position: 0))
    bench.send(#"{"position":25}"#, to: "zigbee2mqtt/blind/set", at: 0)
    bench.advance(to: 1000)
    #expect(bench.device.position(at: bench.now) == 13)
    bench.advance(to: 3000)
    #expect(bench.device.position(at: bench.now) == 25)
    #expect(
      bench.takeLog().last
        == #"2000 zigbee2mqtt/blind {"position":25,"state":"OPEN","moving":false}"#
    )
  }

  @Test(arguments: ["STOP", #"{"state":"STOP"}"#])
  func `a cover stops immediately`(payload: String) {
    var bench = VirtualBench(MovingCover(name: "blind", position: 0))
    bench.send(#"{"state":"OPEN"}"#, to: "zigbee2mqtt/blind/set", at: 0)
    bench.send(payload, to: "zigbee2mqtt/blind/set", at: 4000)
    bench.advance(to: 20_000)
    #expect(bench.device.position(at: bench.now) == 50)
    #expect(
      bench.takeLog().last
        == #"4000 zigbee2mqtt/blind {"position":50,"state":"OPEN","moving":false}"#
    )
  }

  @Test func `a dimmer starts online`() {
    let bench = VirtualBench(TasmotaDimmer(name: "shelf"))
    #expect(bench.log.first == "0 tele/shelf/LWT Online")
  }

  @Test(arguments: [
    ("Dimmer", "70", 70.0), ("dimmer", "+5", 55), ("Dimmer", "-", 40), ("Dimmer", "120", 100),
    ("HSBColor", "120,100,10", 10), ("Color2", "255,0,0", 50),
    ("json", #"{"HSBColor":"20,30,40","Dimmer":60}"#, 60),
  ])
  func `a dimmer accepts absolute and relative brightness`(
    command: String,
    payload: String,
    dimmer: Double
  ) {
    var bench = VirtualBench(TasmotaDimmer(name: "shelf"))
    bench.send(payload, to: "cmnd/shelf/\(command)", at: 0)
    #expect(bench.device.dimmer == dimmer)
    #expect(bench.device.tally == CommandTally(received: 1))
  }

  @Test func `a dimmer answers color and brightness in one message with a result for each`() {
    var bench = VirtualBench(TasmotaDimmer(name: "shelf"))
    _ = bench.takeLog()
    bench.send(#"{"HSBColor":"20,30,40","Dimmer":60}"#, to: "cmnd/shelf/json", at: 0)
    bench.advance(to: 100)
    #expect(
      bench.takeLog() == [
        #"15 stat/shelf/RESULT {"POWER":"ON","Dimmer":40,"HSBColor":"20,30,40"}"#,
        #"15 stat/shelf/RESULT {"POWER":"ON","Dimmer":60,"HSBColor":"20,30,60"}"#,
      ]
    )
  }

  @Test func `a dimmer reports power on the topic for power`() {
    var bench = VirtualBench(TasmotaDimmer(name: "shelf"))
    _ = bench.takeLog()
    bench.send("OFF", to: "cmnd/shelf/Power", at: 0)
    bench.advance(to: 100)
    #expect(
      bench.takeLog() == [
        #"15 stat/shelf/RESULT {"POWER":"OFF"}"#, "15 stat/shelf/POWER OFF",
      ]
    )
  }

  @Test(arguments: [("Dimer", "70"), ("Dimmer", "bright"), ("json", "[1]"), ("CT", "20")])
  func `a dimmer answers an unknown command with Unknown`(command: String, payload: String) {
    var bench = VirtualBench(TasmotaDimmer(name: "shelf"))
    _ = bench.takeLog()
    bench.send(payload, to: "cmnd/shelf/\(command)", at: 0)
    bench.advance(to: 100)
    #expect(bench.takeLog() == [#"15 stat/shelf/RESULT {"Command":"Unknown"}"#])
    #expect(bench.device.tally == CommandTally(received: 1, refused: 1))
  }

  @Test func `an empty payload queries a dimmer and changes nothing`() {
    var bench = VirtualBench(TasmotaDimmer(name: "shelf"))
    bench.send("", to: "cmnd/shelf/Dimmer", at: 0)
    bench.advance(to: 100)
    #expect(bench.device.dimmer == 50)
    #expect(bench.device.tally == CommandTally())
  }
}
