// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import JSON
import Testing
import Values

struct ControlReplyTests {
  private static let event = EventObject(
    id: "01J",
    key: "desk-lamp/brightness",
    phase: .sent,
    value: 40,
    collapsed: 17,
    source: "cli",
    at: "2026-11-21T08:00:00.123Z"
  )
  private static let eventText =
    #"{"id":"01J","key":"desk-lamp/brightness","phase":"sent","value":40,"collapsed":17,"#
    + #""source":"cli","at":"2026-11-21T08:00:00.123Z","attempt":1,"reason":null}"#

  private static let unheard: TargetRow = {
    var row = TargetRow(key: "a/b", target: nil, actual: nil, phase: nil, ageMilliseconds: nil)
    row.isHeard = false
    return row
  }()

  private static let position: PropertyRow = {
    var row = PropertyRow(
      key: "blind/position",
      deviceName: "Blind",
      kind: .integer(NumberRule(range: 0...100, step: 5, unit: "%")),
      policy: .init(delay: .milliseconds(500))
    )
    row.confirmWithin = .seconds(5)
    return row
  }()

  private static let mode: PropertyRow = {
    var row = PropertyRow(
      key: "boiler/mode",
      deviceName: "boiler",
      kind: .choice(["off", "heat"]),
      policy: .init(
        delay: .milliseconds(200),
        maxWait: .milliseconds(200),
        leading: true,
        minInterval: .milliseconds(200)
      )
    )
    row.name = "Mode"
    row.urgent = ["off"]
    row.ends = ["boiler/target"]
    return row
  }()

  private static func change(
    _ operation: ControlRequest.Operation,
    source: String? = nil,
    now: Bool = false,
    at: Double
  ) -> ControlRequest {
    var request = ControlRequest(operation, key: "a/b")
    request.source = source
    request.now = now
    request.at = at
    return request
  }

  @Test(arguments: [
    #"{}"#, #"{"key":"a/b"}"#,
    #"{"key":"a/b","device":"a","type":"wheel","policy":{"delay_ms":1}}"#,
    #"{"key":"a/b","device":"a","type":"text"}"#,
    #"{"key":"a/b","device":"a","type":"text","policy":{"delay_ms":-1}}"#,
    #"{"key":"a/b","device":"a","type":"text","policy":{"delay_ms":1e300}}"#,
  ])
  func `a description without its parts is passed over`(row: String) {
    let line = #"{"describe":[\#(row)],"id":null}"#
    #expect(ControlReply(line: line.utf8.span) == .described([], id: nil))
  }

  @Test(arguments: [
    (ControlReply.event(event, id: "01J"), eventText),
    (.watched(event, watch: 3), #"{"watch":3,"event":\#(eventText)}"#),
    (.watched(event, watch: nil), #"{"watch":null,"event":\#(eventText)}"#),
    (
      .targets(
        [TargetRow(key: "a/b", target: 40, actual: nil, phase: .sending, ageMilliseconds: 12)],
        id: "g"
      ),
      #"{"get":[{"key":"a/b","target":40,"actual":null,"phase":"sending","age_ms":12}],"id":"g"}"#
    ),
    (.targets([], id: nil), #"{"get":[],"id":null}"#),
    (
      .targets([unheard], id: nil),
      #"{"get":[{"key":"a/b","target":null,"actual":null,"phase":null,"age_ms":null,"#
        + #""heard":false}],"id":null}"#
    ),
    (
      .pending(
        [PendingRow(key: "a/b", value: 40.5, collapsed: 3, waits: .inFlight, dueMilliseconds: nil)],
        id: nil
      ),
      #"{"pending":[{"key":"a/b","value":40.5,"collapsed":3,"waits":"in_flight","due_ms":null}],"#
        + #""id":null}"#
    ),
    (
      .described([position], id: "d"),
      #"{"describe":[{"key":"blind/position","device":"Blind","name":null,"type":"integer","#
        + #""range":[0,100],"step":5,"unit":"%","display":null,"values":null,"#
        + #""read_only":false,"#
        + #""policy":{"delay_ms":500,"max_wait_ms":null,"leading":false,"min_interval_ms":0},"#
        + #""confirm_ms":5000,"#
        + #""urgent":[],"ends":[]}],"id":"d"}"#
    ),
    (
      .described([mode], id: nil),
      #"{"describe":[{"key":"boiler/mode","device":"boiler","name":"Mode","type":"choice","#
        + #""range":null,"step":null,"unit":null,"display":null,"values":["off","heat"],"#
        + #""read_only":false,"#
        + #""policy":{"delay_ms":200,"max_wait_ms":200,"leading":true,"min_interval_ms":200},"#
        + #""confirm_ms":null,"#
        + #""urgent":["off"],"ends":["boiler/target"]}],"id":null}"#
    ),
    (.flushed(2, id: nil), #"{"flushed":2,"id":null}"#),
    (.cancelled(0, id: "c"), #"{"cancelled":0,"id":"c"}"#),
    (
      .failure(ErrorReply(.badKey, "a \"key\"", line: 4), id: nil),
      #"{"error":{"code":"bad_key","message":"a \"key\"","line":4},"id":null}"#
    ),
  ])
  func `replies have these lines`(reply: ControlReply, line: String) {
    #expect(String(decoding: reply.line, as: UTF8.self) == line)
    #expect(ControlReply(line: line.utf8.span) == reply)
  }

  private static let recordings: [(ControlReply, String)] = [
    (
      .recorded(change(.set(40), source: "mqtt", at: 1500.25), record: 3),
      #"{"record":3,"change":{"at":1500.25,"key":"a/b","set":40,"source":"mqtt"}}"#
    ),
    (
      .recorded(change(.set(.object(["h": 30])), now: true, at: 0), record: "r"),
      #"{"record":"r","change":{"at":0,"key":"a/b","set":{"h":30},"now":true}}"#
    ),
    (
      .recorded(change(.flush, source: "cli", at: 86_400_000.000001), record: nil),
      #"{"record":null,"change":{"at":86400000.000001,"key":"a/b","flush":true,"source":"cli"}}"#
    ),
    (
      .recorded(change(.cancel, at: 7), record: nil),
      #"{"record":null,"change":{"at":7,"key":"a/b","cancel":true}}"#
    ),
  ]

  @Test(arguments: recordings)
  func `a recorded change is a line of the grammar, its moment first`(
    reply: ControlReply,
    line: String
  ) {
    #expect(String(decoding: reply.line, as: UTF8.self) == line)
    #expect(ControlReply(line: line.utf8.span) == reply)
  }

  @Test func `a number as id is returned as a number`() {
    let reply = ControlReply.event(Self.event, id: 7)
    #expect(String(decoding: reply.line, as: UTF8.self).hasPrefix(#"{"id":7,"key""#))
  }

  @Test(arguments: ["", "[]", "{}", #"{"id":"x"}"#, #"{"id":"x","key":"k","phase":"?","at":""}"#])
  func `anything else is not a reply`(line: String) {
    #expect(ControlReply(line: line.utf8.span) == nil)
  }
}
