// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import Testing

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
      .pending(
        [PendingRow(key: "a/b", value: 40.5, collapsed: 3, waits: .inFlight, dueMilliseconds: nil)],
        id: nil
      ),
      #"{"pending":[{"key":"a/b","value":40.5,"collapsed":3,"waits":"in_flight","due_ms":null}],"#
        + #""id":null}"#
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

  @Test func `a number given as id comes back as a number`() {
    let reply = ControlReply.event(Self.event, id: 7)
    #expect(String(decoding: reply.line, as: UTF8.self).hasPrefix(#"{"id":7,"key""#))
  }

  @Test(arguments: ["", "[]", "{}", #"{"id":"x"}"#, #"{"id":"x","key":"k","phase":"?","at":""}"#])
  func `anything else is not a reply`(line: String) {
    #expect(ControlReply(line: line.utf8.span) == nil)
  }
}
