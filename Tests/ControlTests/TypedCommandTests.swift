// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import JSON
import Testing
import Values

/// What a person types, and the program `settle` makes of it.
struct TypedCommandTests {
  private func run(_ arguments: [String], answer: [String]) throws -> SettleProcess {
    let gateway = try FakeGateway { _ in answer }
    return try SettleProcess.run(arguments, environment: ["SETTLE_SOCKET=\(gateway.path)"])
  }

  private static let requests: [([String], String)] = [
    (
      ["set", "lamp", "brightness=40", "power=on", "transition=2"],
      #"{"key":"lamp","set":{"brightness":40,"power":"on","transition":2},"source":"cli"}"#
    ),
    (
      ["set", "lamp", #"color={"h":30,"s":100}"#, "name=a=b", "--now"],
      #"{"key":"lamp","set":{"color":{"h":30,"s":100},"name":"a=b"},"source":"cli","now":true}"#
    ),
    (["set", "a/b", "50%"], #"{"key":"a/b","set":"50%","source":"cli"}"#),
    (["set", "a/b", "-10%"], #"{"key":"a/b","set":"-10%","source":"cli"}"#),
    (["set", "a/b", "red"], #"{"key":"a/b","set":"red","source":"cli"}"#),
    (["step", "a/b", "+10%"], #"{"key":"a/b","step":"+10%","source":"cli"}"#),
    (["step", "a/b", "-2.5%"], #"{"key":"a/b","step":"-2.5%","source":"cli"}"#),
    (["set", "lamp", "40"], #"{"describe":"lamp"}"#),
    (["set", "lamp", "=40"], #"{"describe":"lamp"}"#),
    (["toggle", "power"], #"{"describe":"power"}"#),
    (["wait", "lamp"], #"{"describe":"lamp"}"#),
    (["get", "--value", "a/b"], #"{"get":"a/b"}"#),
    (["watch", "lamp", "--phase", "sent"], #"{"watch":"lamp"}"#),
  ]

  @Test(arguments: requests)
  func `each command sends one line`(arguments: [String], line: String) throws {
    // The refusal contains the request.
    let gateway = try FakeGateway { line in
      let refusal = ControlReply.failure(ErrorReply(.unsupported, line), id: nil)
      return [String(decoding: refusal.line, as: UTF8.self)]
    }
    let result = try SettleProcess.run(
      arguments,
      environment: ["SETTLE_SOCKET=\(gateway.path)"]
    )
    #expect(result == SettleProcess(code: 65, output: "", errors: "settle: \(line)\n"))
  }

  private static let mistakes: [([String], String)] = [
    (
      ["set", "a/b", "40", "c=1"],
      #"unexpected argument "c=1"; several properties are set with a device: "#
        + "settle set DEVICE NAME=VALUE…"
    ),
    (["set", "lamp", "a=1", "a=2"], "a is given twice"),
  ]

  @Test(arguments: mistakes)
  func `wrong usage is 64`(arguments: [String], message: String) throws {
    #expect(
      try SettleProcess.run(arguments)
        == SettleProcess(code: 64, output: "", errors: "settle: \(message)\n")
    )
  }

  @Test func `a device where a key is needed is answered with its properties`() throws {
    let rows = ["lamp/power", "lamp/level"].map { key in
      #"{"key":"\#(key)","device":"Lamp","type":"boolean","policy":{"delay_ms":1}}"#
    }
    let answer = #"{"describe":[\#(rows.joined(separator: ","))],"id":null}"#
    #expect(
      try run(["step", "lamp", "5"], answer: [answer])
        == SettleProcess(
          code: 65,
          output: "",
          errors: #"settle: "lamp" is a device; its properties are lamp/power, lamp/level"# + "\n"
        )
    )
  }

  /// The answer of `get` to a property, with these members.
  private static func row(_ target: String, _ actual: String) -> String {
    #"{"key":"a/b","target":\#(target),"actual":\#(actual),"phase":null,"age_ms":null}"#
  }

  private static let values: [([String], String, Int32)] = [
    ([row("40", "39.5")], "39.5\n", 0), ([row("40", "null")], "40\n", 0),
    ([row("true", "null")], "true\n", 0), ([row(#""heat""#, "null")], "heat\n", 0),
    ([row(#"{"h":30,"s":100}"#, "null")], "#ff8000\n", 0), ([row("null", "null")], "", 1),
    ([row("1", "1"), row("2", "2")], "", 65),
  ]

  @Test(arguments: values)
  func `a bare value is what the device reports, else the target`(
    rows: [String],
    output: String,
    code: Int32
  ) throws {
    let answer = #"{"get":[\#(rows.joined(separator: ","))],"id":null}"#
    let result = try run(["get", "--value", "a/b"], answer: [answer])
    #expect(result.output == output)
    #expect(result.code == code)
  }

  @Test func `watch shows only the phases that are named`() throws {
    let phases: [Phase] = [.accepted, .sending, .sent, .failed, .expired, .confirmed]
    let lines = phases.map { phase in
      let event = EventObject(id: "1", key: "a/b", phase: phase, value: 1, at: "now")
      let reply = ControlReply.watched(event, watch: nil)
      return String(decoding: reply.line, as: UTF8.self)
    }
    let end = ControlReply.failure(ErrorReply(.stopping, "the gateway ends"), id: nil)
    let result = try run(
      ["watch", "--phase", "sent,failed", "--phase", "expired"],
      answer: lines + [String(decoding: end.line, as: UTF8.self)]
    )
    let shown = result.output.split(separator: "\n").map { $0.split(separator: "\t")[2] }
    #expect(shown == ["sent", "failed", "expired"])
  }
}
