// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import Devices
import JSON
import LastOut
import Operations
import Simulation
import Testing

/// Simulated devices send the messages that their conventions document, in order.
@Suite struct ConventionTests {
  /// The messages of a device after one message, for `milliseconds`.
  private func said<Convention: WireConvention>(
    _ device: ConventionalDevice<Convention>,
    to topic: String,
    _ payload: String,
    after milliseconds: Int = 5000
  ) -> [String] {
    var bench = VirtualBench(device)
    _ = bench.takeLog()
    bench.send(payload, to: topic, at: 0)
    bench.advance(to: milliseconds)
    return bench.takeLog()
  }

  @Test func `a Shelly of the second generation replies by id, then reports its status`() {
    let light = ShellyRPC.device("dim", parts: ["light:0": ShellyRPC.light])
    let request =
      #"{"id":7,"src":"us","method":"Light.Set","params":{"id":0,"on":false,"brightness":50}}"#
    let status = #"{"id":0,"source":"MQTT","output":false,"brightness":50}"#
    #expect(
      said(light, to: "dim/rpc", request) == [
        #"20 us/rpc {"id":7,"src":"dim","dst":"us","result":{"was_on":true}}"#,
        "20 dim/status/light:0 \(status)",
        #"20 dim/events/rpc {"src":"dim","dst":"dim/events","method":"NotifyStatus","#
          + #""params":{"light:0":\#(status)}}"#,
      ]
    )
  }

  @Test func `a Shelly of the second generation replies to unknown requests with an error`() {
    let light = ShellyRPC.device("dim", parts: ["light:0": ShellyRPC.light])
    let request = #"{"id":8,"src":"us","method":"Light.Blink","params":{"id":0}}"#
    #expect(
      said(light, to: "dim/rpc", request) == [
        #"20 us/rpc {"id":8,"src":"dim","dst":"us","#
          + #""error":{"code":404,"message":"No handler for Light.Blink"}}"#
      ]
    )
  }

  @Test func `a cover of the second generation reports its position while it moves`() {
    let cover = ShellyRPC.device("c", parts: ["cover:0": ShellyRPC.cover])
    let request =
      #"{"id":1,"src":"us","method":"Cover.GoToPosition","params":{"id":0,"pos":10}}"#
    let states = said(cover, to: "c/rpc", request).filter { $0.contains("c/status/cover:0") }
    let words = states.compactMap { $0.split(separator: "state\":\"").last?.prefix { $0 != "\"" } }
    #expect(words == ["opening", "opening", "stopped"])
    #expect(states.last?.contains(#""current_pos":10"#) == true)
  }

  @Test func `a Homie device reports its target immediately and its value as it moves`() {
    let lamp = HomieDevice.device(
      "homie/5/lamp",
      properties: ["light/level": (datatype: "float", value: 20)]
    )
    #expect(
      said(lamp, to: "homie/5/lamp/light/level/set", "50") == [
        "20 homie/5/lamp/light/level/$target 50", "20 homie/5/lamp/light/level 20",
        "220 homie/5/lamp/light/level/$target 50", "220 homie/5/lamp/light/level 40",
        "320 homie/5/lamp/light/level/$target 50", "320 homie/5/lamp/light/level 50",
      ]
    )
  }

  @Test func `a Homie device has a will and starts with its description`() {
    var lamp = HomieDevice.device(
      "homie/5/lamp",
      properties: ["light/on": (datatype: "boolean", value: "true")]
    )
    #expect(
      lamp.will == [DeviceMessage(topic: "homie/5/lamp/$state", text: "lost", retain: true)]
    )
    let words = lamp.start(at: .zero)
    #expect(
      words.map(\.topic) == [
        "homie/5/lamp/$description", "homie/5/lamp/$state", "homie/5/lamp/light/on/$target",
        "homie/5/lamp/light/on",
      ]
    )
    #expect(words.allSatisfy { $0.retain })
  }

  @Test(arguments: [("set", "50"), ("set", #"{"value":50,"options":{"transitionDuration":"1s"}}"#)])
  func `a Z-Wave dimmer reports its target immediately and its current value later`(
    verb: String,
    payload: String
  ) {
    let dimmer = ZWaveNode.device("zw/5", isRaw: true, parts: ["38/0": ZWaveNode.level])
    let log = said(dimmer, to: "zw/5/38/0/targetValue/\(verb)", payload)
    #expect(log.prefix(2) == ["20 zw/5/38/0/targetValue 50", "20 zw/5/38/0/currentValue 20"])
    #expect(log.last?.hasSuffix("zw/5/38/0/currentValue 50") == true)
    #expect(log.count > 4)
  }

  @Test func `a write to a Z-Wave node's current value sets its target`() {
    let plug = ZWaveNode.device("zw/6", parts: ["37/0": ZWaveNode.binary])
    #expect(
      said(plug, to: "zw/6/37/0/currentValue/set", "true") == [
        #"20 zw/6/37/0/targetValue {"time":20,"value":true}"#,
        #"20 zw/6/37/0/currentValue {"time":20,"value":true}"#,
      ]
    )
  }

  @Test(arguments: [("0", "0"), ("OFF", "0"), ("T", "0"), ("77", "77"), ("ON", "128")])
  func `a WLED strip reports power as brightness`(payload: String, brightness: String) {
    #expect(
      said(WLEDStrip.device("wled/x"), to: "wled/x", payload) == [
        "20 wled/x/g \(brightness)", "20 wled/x/c #FFA000",
        "20 wled/x/v <vs><ac>\(brightness)</ac></vs>",
      ]
    )
  }

  @Test func `a Tasmota shutter reports direction and target while it moves, and stops in place`() {
    var bench = VirtualBench(TasmotaShutter.device("s"))
    _ = bench.takeLog()
    bench.send("50", to: "cmnd/s/ShutterPosition1", at: 0)
    bench.send("STOP", to: "cmnd/s/ShutterPosition1", at: 400)
    bench.advance(to: 5000)
    let log = bench.takeLog()
    #expect(
      log.first == #"20 stat/s/RESULT {"Shutter1":{"Position":0,"Direction":1,"Target":50}}"#
    )
    #expect(
      log.last == #"420 stat/s/RESULT {"Shutter1":{"Position":10,"Direction":0,"Target":10}}"#
    )
  }

  @Test func `with SetOption59 a Tasmota light reports STATE after RESULT`() {
    var bench = VirtualBench(TasmotaDimmer(name: "t", reportsState: true))
    _ = bench.takeLog()
    bench.send("70", to: "cmnd/t/Dimmer", at: 0)
    bench.advance(to: 100)
    #expect(
      bench.takeLog().compactMap { $0.split(separator: " ").dropFirst().first } == [
        "stat/t/RESULT", "tele/t/STATE",
      ]
    )
  }

  @Test func `an ESPHome light reports its target, a cover its position`() {
    let light = ESPHomeNode.device("n", parts: ["light/o": ESPHomeNode.light])
    #expect(
      said(light, to: "n/light/o/command", #"{"state":"OFF","transition":2}"#) == [
        #"20 n/light/o/state {"state":"OFF","brightness":100,"color_temp":300}"#
      ]
    )
    let cover = ESPHomeNode.device("n", parts: ["cover/o": ESPHomeNode.cover])
    let places = said(cover, to: "n/cover/o/position/command", "15")
      .filter { $0.contains("position/state") }.compactMap { $0.split(separator: " ").last }
    #expect(places == ["0", "5", "10", "15"])
  }

  @Test func `a Shelly of the first generation accepts words for relays and JSON for lights`() {
    let relay = ShellyFirst.device("shellies/r", parts: ["relay/0": ShellyFirst.relay])
    #expect(said(relay, to: "shellies/r/relay/0/command", "on") == ["20 shellies/r/relay/0 on"])
    let light = ShellyFirst.device("shellies/l", parts: ["light/0": ShellyFirst.light])
    #expect(
      said(light, to: "shellies/l/light/0/set", #"{"turn":"off","brightness":7}"#) == [
        #"20 shellies/l/light/0/status {"ison":false,"mode":"white","brightness":7}"#
      ]
    )
  }

  @Test(arguments: ["bright", "[1]", ""])
  func `an invalid command changes nothing and is counted`(payload: String) {
    var bench = VirtualBench(HomeAssistantThing.device("ha/l", "light-json"))
    _ = bench.takeLog()
    bench.send(payload, to: "ha/l/set", at: 0)
    bench.advance(to: 100)
    #expect(bench.takeLog() == [])
    #expect(bench.device.tally == CommandTally(received: 1, refused: 1))
  }

  @Test(arguments: ConventionName.allCases)
  func `every convention's house loads and its script uses existing keys`(
    convention: ConventionName
  ) throws {
    let house = DemoHouse.with(convention)
    let folder = try TemporaryFolder.make("settle-house")
    defer { TemporaryFolder.remove(folder) }
    try TextFile.write(house.deviceFile, to: folder + "/house.yaml")
    let registry = try ConfigurationLoader.loadDevices(in: folder).registry
    for request in house.script.changes {
      let property = registry[try registry.index(of: request.key)].property
      #expect(house.devices.contains { $0.listens(to: property.command.topic) }, "\(request.key)")
    }
    let replay = DirectReplay(house.script, registry: registry, devices: house.devices)
    #expect(replay.commands == house.script.changes.count)
    #expect(replay.ledger.isDone)
  }
}
