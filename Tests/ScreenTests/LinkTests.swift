// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import LastOut
import Testing
import Values
@testable import Screen

/// The connection to the gateway, and the passage of time.
struct LinkTests {
  @Test func `a new connection requests everything`() {
    var screen = ControlScreen(name: "me", size: ScreenSize(columns: 80, rows: 24))
    #expect(screen.link.shouldConnect(at: .zero))
    screen.connected(at: .zero)
    #expect(!screen.link.shouldConnect(at: .zero))
    #expect(
      screen.dequeueRequests().map { String(decoding: $0.line, as: UTF8.self) } == [
        #"{"describe":"*","id":"describe"}"#, #"{"watch":"*","id":"watch"}"#,
        #"{"get":"*","id":"get"}"#, #"{"pending":"*","id":"pending"}"#,
        #"{"status":true,"id":"status"}"#,
      ]
    )
    #expect(screen.dequeueRequests() == [])
  }

  @Test func `reconnection attempts back off`() {
    var stage = Stage()
    var waits: [Int64] = []
    for _ in 0..<6 {
      stage.screen.disconnected("gone", at: stage.now)
      #expect(!stage.screen.link.shouldConnect(at: stage.now))
      let next = stage.screen.nextTick(after: stage.now)
      waits.append(stage.now.duration(to: next).wholeNanoseconds / 1_000_000)
      stage.now = next
      #expect(stage.screen.link.shouldConnect(at: stage.now))
    }
    #expect(waits == [200, 400, 800, 1600, 2000, 2000])
  }

  @Test func `without a gateway the values stay and changes are rejected`() {
    var stage = Stage()
    stage.select("desk-lamp/brightness")
    stage.type(">")
    _ = stage.requests()
    stage.screen.disconnected("the gateway closed the connection", at: stage.now)
    stage.type(">f")
    #expect(stage.requests() == [])
    #expect(stage.line("brightness") == "brightness 101 100")
    #expect(stage.texts()[0].hasSuffix("○ no gateway, trying again"))
    #expect(stage.texts()[22] == " no gateway: nothing was changed")
  }

  @Test func `after a restart the gateway's values are shown`() {
    var stage = Stage()
    stage.select("desk-lamp/brightness")
    stage.type(">")
    stage.screen.disconnected("gone", at: stage.now)
    stage.connect()
    #expect(stage.row("desk-lamp/brightness")?.target == 100)
    #expect(stage.row("desk-lamp/brightness")?.progress == .idle)
    #expect(stage.screen.list.selectedKey == "desk-lamp/brightness")
    #expect(stage.texts()[0].hasSuffix("● connected"))
    stage.type(">")
    #expect(stage.changes() == [#"{"key":"desk-lamp/brightness","set":101}"#])
  }

  @Test func `the selection of a removed property moves to the first one`() {
    var stage = Stage()
    stage.select("strip/speed")
    stage.screen.receive(.described([Stage.lamp], id: "describe"), at: stage.now)
    #expect(stage.screen.list.selectedKey == "desk-lamp/brightness")
  }

  @Test func `an event of an unknown property requests the devices again`() {
    var stage = Stage()
    stage.hear(.accepted, "01J", "new/one", 1)
    #expect(stage.requests() == [#"{"describe":"*","id":"describe"}"#])
  }

  @Test func `values in view are read every second unless an answer is missing`() {
    var stage = Stage(rows: 11)
    stage.pass(999)
    #expect(stage.requests() == [])
    stage.pass(1)
    #expect(
      stage.requests() == [
        #"{"status":true,"id":"status"}"#, #"{"get":"desk-lamp/*","id":"get"}"#,
        #"{"get":"boiler/*","id":"get"}"#,
      ]
    )
    stage.pass(1000)
    #expect(stage.requests() == [])
    stage.pass(2000)
    #expect(stage.screen.link.isSilent)
    #expect(stage.texts()[0].hasSuffix("○ gateway does not answer"))
    stage.screen.receive(.targets([], id: "get"), at: stage.now)
    #expect(!stage.screen.link.isSilent)
  }

  @Test func `the next tick is a second away, or a frame while a bar moves`() {
    var stage = Stage()
    #expect(stage.now.duration(to: stage.screen.nextTick(after: stage.now)) == .seconds(1))
    stage.type("j>")
    #expect(stage.now.duration(to: stage.screen.nextTick(after: stage.now)) == .milliseconds(50))
  }

  @Test func `a notice expires`() {
    var stage = Stage()
    stage.screen.receive(.flushed(2, id: "flush"), at: stage.now)
    #expect(stage.texts()[22] == " flushed 2")
    stage.pass(3000)
    #expect(stage.texts()[22] == " desk-lamp/power  ·  on or off  ·  settles 20ms")
  }
}
