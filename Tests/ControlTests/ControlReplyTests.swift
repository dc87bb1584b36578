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
    (.reloaded(.object(["devices": 12]), id: nil), #"{"reloaded":{"devices":12},"id":null}"#),
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

  @Test(arguments: [
    (Int64(0), "1970-01-01T00:00:00.000Z"),
    (1_795_248_000_123, "2026-11-21T08:00:00.123Z"),
    (951_782_400_000, "2000-02-29T00:00:00.000Z"),
    (-1, "1969-12-31T23:59:59.999Z"),
    (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
    (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
  ])
  func `times are written in UTC with milliseconds`(moment: Int64, text: String) {
    #expect(Timestamp.text(millisecondsSince1970: moment) == text)
  }
}
