// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import TestBroker
import Testing

/// A text keeps its digits and blanks on every surface; a JSON text is decoded.
@Suite(.blocking) struct TextScenarios {
  private static let devices = """
    board:
      options: [transition]
      properties:
        line:
          type: text
          command: {topic: board/set}
          state: {topic: board}
        member: {type: text, state: {topic: board/json, value: /a}}
        channel:
          type: choice
          values: ["1.0", "12.30", "2"]
          command: {topic: board/channel}
          state: {topic: board/channel/state}
        level: {type: number, range: [0, 100], step: 0.1, command: {topic: board/level}}

    """

  /// What somebody gives, and the text that it is.
  private static let texts = [
    ("12.30", "12.30"), ("+49170", "+49170"), ("1.0", "1.0"), ("-0", "-0"), ("1e3", "1e3"),
    ("12345678901234567890", "12345678901234567890"), ("007", "007"), ("true", "true"),
    ("null", "null"), (" two  blanks ", " two  blanks "), (#""quoted""#, "quoted"),
    (#" "quoted" "#, "quoted"), (#""12.30""#, "12.30"), (#""open"#, #""open"#),
    (#"{"a": 1.0}"#, #"{"a": 1.0}"#), ("{open", "{open"), ("[1, 2]", "[1, 2]"), ("50%", "50%"),
    (#"{"value": 12.30}"#, "12.30"), (#"{"value":"a"}"#, "a"), (#"{"a":1}"#, #"{"a":1}"#),
    (#"{"value": 1.50, "id": "c", "source": "s"}"#, "1.50"), ("[1,2]", "[1,2]"),
  ]

  @Test func `what MQTT says is the text`() throws {
    let bench = try Bench.running(devices: Self.devices)
    let witness = try bench.witness()
    for (given, text) in Self.texts {
      witness.publish("settle/board/line/set", given)
      #expect(witness.waitFor("board/set", text), "\(given)")
    }
    witness.publish("settle/board/set", #"{"line": 7.50, "level": 7.50}"#)
    #expect(witness.waitFor("board/set", "7.50"))
    #expect(witness.waitFor("board/level", "7.5"))
    witness.publish("settle/board/channel/set", #"{"value": 12.30, "id": "c"}"#)
    #expect(witness.waitFor("board/channel", "12.30"))
    witness.publish("settle/board/channel/set", #"{"value": 2.0}"#)
    #expect(witness.waitFor("board/channel", "2"))
  }

  @Test func `what a device reports is the text`() throws {
    let bench = try Bench.running(devices: Self.devices)
    let witness = try bench.witness()
    for (given, text) in Self.texts {
      witness.publish("board", given)
      #expect(witness.waitFor("settle/board/line", text), "\(given)")
    }
    witness.publish("board/json", #"{"a": 12.30, "b": "x"}"#)
    #expect(witness.waitFor("settle/board/member", "12.30"))
    witness.publish("board/channel/state", "1.0")
    #expect(witness.waitFor("settle/board/channel", "1.0"))
    witness.publish("board/channel/state", "2.0")
    #expect(witness.waitFor("settle/board/channel", "2"))
    witness.publish("board/channel/state", #"{"value": 12.30, "id": 1}"#)
    #expect(witness.waitFor("settle/board/channel", "12.30"))
  }

  @Test func `a number may be in a text, and in hexadecimal digits`() throws {
    let device = """
      valve:
        properties:
          level:
            type: integer
            range: [0, 1000]
            encode: Z01%02X
            decode: {none: FF, else: "%X"}
            command: {topic: valve/set}
            state: {topic: valve}

      """
    let bench = try Bench.running(devices: device)
    let witness = try bench.witness()
    witness.publish("settle/valve/level/set", "16")
    #expect(witness.waitFor("valve/set", "Z0110"))
    for (report, level) in [("10", "16"), ("1e1", "481"), ("0A", "10"), ("009", "9")] {
      witness.publish("valve", report)
      #expect(witness.waitFor("settle/valve/level", level), "\(report)")
    }
  }

  @Test func `what is typed is the text`() throws {
    let bench = try Bench.running(devices: Self.devices)
    let witness = try bench.witness()
    func settle(_ arguments: String...) throws {
      let run = try SettleRun(arguments, socketPath: bench.socketPath)
      #expect(run.waitForExit() == 0, "\(run.errors)")
    }
    for (given, text) in Self.texts {
      try settle("set", "board/line", given)
      #expect(witness.waitFor("board/set", text), "\(given)")
    }
    try settle("set", "board/channel", "12.30")
    #expect(witness.waitFor("board/channel", "12.30"))
    try settle("set", "board/level", "7.50")
    #expect(witness.waitFor("board/level", "7.5"))
    try settle("set", "board", "line=8.20", "level=8.20")
    #expect(witness.waitFor("board/set", "8.20"))
    #expect(witness.waitFor("board/level", "8.2"))
  }

  @Test func `numbers in lines and over HTTP are read as they are written`() throws {
    let (bench, curl) = try Bench.serving(devices: Self.devices)
    let witness = try bench.witness()
    let client = try bench.client()
    client.send(#"{"key": "board/line", "set": 12.30}"#)
    #expect(witness.waitFor("board/set", "12.30"))
    client.send(#"{"key": "board", "set": {"line": 12.40, "level": 12.40}}"#)
    #expect(witness.waitFor("board/set", "12.40"))
    #expect(witness.waitFor("board/level", "12.4"))
    for (body, path, text) in [
      ("1.50", "/line", "1.50"), (#"{"value": 1.60}"#, "/line", "1.60"),
      (#"{"line": 1.70}"#, "", "1.70"), (#"{"set": {"line": 1.80}}"#, "", "1.80"),
    ] {
      let answer = try curl.send("PUT", "/v1/devices/board\(path)", body)
      #expect((200...202).contains(answer.status))
      #expect(witness.waitFor("board/set", text), "\(body)")
    }
  }
}
