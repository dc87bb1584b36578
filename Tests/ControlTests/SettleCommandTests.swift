// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Glibc
import JSON
import Testing
import Values

/// The program `settle` against a gateway with scripted replies.
struct SettleCommandTests {
  /// The lines of these phases, for any change.
  private static func phases(_ phases: [Phase], reason: String? = nil) -> [String] {
    phases.map { phase in
      let event = EventObject(
        id: "01J",
        key: "a/b",
        phase: phase,
        value: 40,
        collapsed: 2,
        source: "cli",
        at: "2026-11-21T08:00:00.123Z",
        reason: phase.isFinal(canConfirm: true) ? reason : nil
      )
      return String(decoding: event.bytes, as: UTF8.self)
    }
  }

  private static func failure(_ code: ErrorCode, _ message: String) -> [String] {
    [
      String(
        decoding: ControlReply.failure(ErrorReply(code, message), id: nil).line,
        as: UTF8.self
      )
    ]
  }

  private func run(_ arguments: [String], answer: [String]) throws -> SettleProcess {
    let gateway = try FakeGateway { _ in answer }
    return try SettleProcess.run(arguments, environment: ["SETTLE_SOCKET=\(gateway.path)"])
  }

  private static let requests: [([String], String)] = [
    (["set", "a/b", "40"], #"{"key":"a/b","set":40,"source":"cli"}"#),
    (["set", "a/b", "-5.5"], #"{"key":"a/b","set":-5.5,"source":"cli"}"#),
    (["set", "a/b", "+10"], #"{"key":"a/b","set":"+10","source":"cli"}"#),
    (["set", "a/b", "on"], #"{"key":"a/b","set":"on","source":"cli"}"#),
    (["set", "a/b", "true"], #"{"key":"a/b","set":true,"source":"cli"}"#),
    (["set", "a/b", "null"], #"{"key":"a/b","set":"null","source":"cli"}"#),
    (["set", "a/b", "21,5"], #"{"key":"a/b","set":"21,5","source":"cli"}"#),
    (["set", "a/b", #""on""#], #"{"key":"a/b","set":"on","source":"cli"}"#),
    (["set", "a/b", "12.30"], #"{"key":"a/b","set":"12.30","source":"cli"}"#),
    (["set", "a/b", #"{"value": 1.0}"#], #"{"key":"a/b","set":"1.0","source":"cli"}"#),
    (
      ["set", "a/b", #"{"value": 12.30, "id": 7, "source": "s"}"#],
      #"{"key":"a/b","set":"12.30","id":"7","source":"s"}"#
    ),
    (
      ["set", "a/b", "--id", "x", #"{"value": true, "id": "y"}"#],
      #"{"key":"a/b","set":true,"id":"x","source":"cli"}"#
    ),
    (
      ["set", "a", #"b={"value": 1.0, "source": "s"}"#, "c=2"],
      #"{"key":"a","set":{"b":"1.0","c":2},"source":"s"}"#
    ),
    (["set", "a/b", #"{ "h":30}"#], #"{"key":"a/b","set":"{ \"h\":30}","source":"cli"}"#),
    (["set", "a/b", #"{"h":30,"s":5}"#], #"{"key":"a/b","set":{"h":30,"s":5},"source":"cli"}"#),
    (["set", "a/b", "[1,2]"], #"{"key":"a/b","set":"[1,2]","source":"cli"}"#),
    (["set", "a", "b=[1,2]"], #"{"key":"a","set":{"b":[1,2]},"source":"cli"}"#),
    (["set", "a/b", "--", "--json"], #"{"key":"a/b","set":"--json","source":"cli"}"#),
    (["step", "a/b", "-5"], #"{"key":"a/b","step":-5,"source":"cli"}"#),
    (["step", "a/b", "+0.5"], #"{"key":"a/b","step":0.5,"source":"cli"}"#),
    (["toggle", "a/b"], #"{"key":"a/b","toggle":true,"source":"cli"}"#),
    (["set", "--", "a/b", "40"], #"{"key":"a/b","set":40,"source":"cli"}"#),
    (["step", "--json", "a/b", "+0.5"], #"{"key":"a/b","step":0.5,"source":"cli"}"#),
    (["toggle", "a/b", "--json"], #"{"key":"a/b","toggle":true,"source":"cli"}"#),
    (
      [
        "set", "a/b", "1", "--now", "--ttl=90s", "--id", "x", "--source", "me", "--timeout", "5s",
      ],
      #"{"key":"a/b","set":1,"id":"x","source":"me","now":true,"ttl":"90s"}"#
    ),
    (["set", "a/b", "1", "--wait=sent"], #"{"key":"a/b","set":1,"source":"cli","wait":"sent"}"#),
    (["get"], #"{"get":"*"}"#),
    (["pending", "a/*"], #"{"pending":"a/*"}"#),
    (["flush"], #"{"key":"*","flush":true}"#),
    (["cancel", "a/b"], #"{"key":"a/b","cancel":true}"#),
    (["watch", "a/?"], #"{"watch":"a/?"}"#),
    (["record"], #"{"record":"*"}"#),
    (["record", "a/*", "--for", "5s"], #"{"record":"a/*"}"#),
  ]

  @Test(arguments: requests)
  func `each command sends one line`(arguments: [String], line: String) throws {
    // The refusal contains the request.
    let gateway = try FakeGateway { Self.failure(.unsupported, $0) }
    let result = try SettleProcess.run(
      arguments,
      environment: ["SETTLE_SOCKET=\(gateway.path)"]
    )
    #expect(result == SettleProcess(code: 65, output: "", errors: "settle: \(line)\n"))
  }

  @Test func `a mistyped member beside a value is refused`() throws {
    let result = try run(["set", "a/b", #"{"value":1,"vaule":2}"#], answer: [])
    #expect(result.code == 65)
    #expect(
      result.errors
        == "settle: expected an id or a source beside 'value', each a text; found 'vaule'\n"
    )
  }

  private static let endings: [([String], [Phase], Int32)] = [
    ([String](), [Phase.accepted], Int32(0)),
    ([], [.unchanged], 0),
    ([], [.rejected], 65),
    (["--wait"], [.accepted, .sending, .sent, .confirmed], 0),
    (["--wait"], [.accepted, .unchanged], 0),
    (["--wait"], [.accepted, .sending, .sent, .superseded], 1),
    (["--wait"], [.accepted, .sending, .sent, .failed], 1),
    (["--wait"], [.accepted, .expired], 1),
    (["--wait"], [.accepted, .cancelled], 1),
    (["--wait"], [.rejected], 65),
    (["--wait=sent"], [.accepted, .sending, .sent], 0),
    (["--wait=sent"], [.accepted, .superseded], 1),
    (["--wait=confirmed"], [.accepted, .sending, .sent, .confirmed], 0),
  ]

  @Test(arguments: endings)
  func `the last phase decides the exit code`(
    options: [String],
    phases: [Phase],
    code: Int32
  ) throws {
    let lines = Self.phases(phases)
    let result = try run(["set", "a/b", "40"] + options, answer: lines)
    let shown = options.isEmpty ? [] : phases.filter { $0 != .rejected }
    #expect(result.code == code)
    #expect(
      result.output
        == shown.map { "2026-11-21T08:00:00.123Z\ta/b\t\($0)\t40\t2\tcli\t-\n" }.joined()
    )
    let json = try run(["set", "a/b", "40", "--json"] + options, answer: lines)
    #expect(json.code == code)
    #expect(json.output == lines.map { "\($0)\n" }.joined())
  }

  @Test func `a refusal and a failure print the reason`() throws {
    let refused = try run(
      ["set", "a/b", "400"],
      answer: Self.phases([.rejected], reason: "400 is outside 0 to 254")
    )
    #expect(refused.errors == "settle: a/b: 400 is outside 0 to 254\n")
    let failed = try run(
      ["set", "a/b", "40", "--wait"],
      answer: Self.phases([.accepted, .failed], reason: "no answer from the device")
    )
    #expect(failed.errors == "settle: a/b: failed: no answer from the device\n")
  }

  @Test func `a bare wait awaits sent where nothing can confirm`() throws {
    let gateway = try FakeGateway { line in
      line.contains("confirmed")
        ? Self.failure(.cannotConfirm, "a/b has no state topic") : Self.phases([.accepted, .sent])
    }
    let environment = ["SETTLE_SOCKET=\(gateway.path)"]
    #expect(
      try SettleProcess.run(["set", "a/b", "40", "--wait"], environment: environment).code == 0
    )
  }

  @Test func `waiting for a confirmation where nothing can confirm is a mistake`() throws {
    let result = try run(
      ["set", "a/b", "40", "--wait=confirmed"],
      answer: Self.failure(.cannotConfirm, "a/b has no state topic")
    )
    #expect(
      result == SettleProcess(code: 65, output: "", errors: "settle: a/b has no state topic\n")
    )
  }

  @Test func `a timeout prints the last phase`() throws {
    let result = try run(
      ["set", "a/b", "40", "--wait", "--timeout", "50ms"],
      answer: Self.phases([.accepted])
    )
    #expect(result.code == 75)
    #expect(
      result.errors == "settle: no answer within 50ms; the last phase was accepted\n"
    )
  }

  @Test func `rows are separated by tabs in a pipe and objects on demand`() throws {
    let targets =
      #"{"get":[{"key":"a/b","target":40,"actual":null,"phase":"sent","age_ms":1200},"#
      + #"{"key":"a/c","target":"on\tx","actual":true,"phase":null,"age_ms":null}],"id":null}"#
    #expect(
      try run(["get"], answer: [targets]).output
        == "a/b\t40\t-\tsent\t1200\na/c\ton\\tx\ttrue\t-\t-\n"
    )
    #expect(
      try run(["get", "--json"], answer: [targets]).output
        == #"{"key":"a/b","target":40,"actual":null,"phase":"sent","age_ms":1200}"# + "\n"
        + #"{"key":"a/c","target":"on\tx","actual":true,"phase":null,"age_ms":null}"# + "\n"
    )
    let pending =
      #"{"pending":[{"key":"a/b","value":1,"collapsed":3,"waits":"in_flight","due_ms":null}],"id":1}"#
    #expect(try run(["pending"], answer: [pending]).output == "a/b\t1\t3\tin_flight\t-\n")
    #expect(
      try run(["pending", "--json"], answer: [pending]).output
        == #"{"key":"a/b","value":1,"collapsed":3,"waits":"in_flight","due_ms":null}"# + "\n"
    )
  }

  private static let counts: [([String], String, String)] = [
    (["flush"], #"{"flushed":3,"id":null}"#, "flushed 3\n"),
    (["flush", "--json"], #"{"flushed":3,"id":null}"#, "{\"flushed\":3}\n"),
    (["cancel", "*"], #"{"cancelled":0,"id":null}"#, "cancelled 0\n"),
    (["cancel", "*", "--json"], #"{"cancelled":0,"id":null}"#, "{\"cancelled\":0}\n"),
    (["get", "nothing/*"], #"{"get":[],"id":null}"#, ""),
  ]

  @Test(arguments: counts)
  func `counts are printed`(arguments: [String], answer: String, output: String) throws {
    #expect(
      try run(arguments, answer: [answer]) == SettleProcess(code: 0, output: output, errors: "")
    )
  }

  @Test(arguments: [
    (ErrorCode.unknownKey, Int32(65)), (.stopping, 69), (.limit, 1),
  ])
  func `a refusal has its exit code`(code: ErrorCode, exit: Int32) throws {
    let result = try run(["flush"], answer: Self.failure(code, "because"))
    #expect(result == SettleProcess(code: exit, output: "", errors: "settle: because\n"))
  }

  @Test func `a refused reload prints JSON on demand`() throws {
    let refusal = Self.failure(.badConfiguration, "a.yaml:1:2: wrong")
    #expect(
      try run(["reload", "--json"], answer: refusal)
        == SettleProcess(code: 78, output: refusal.map { "\($0)\n" }.joined(), errors: "")
    )
    #expect(
      try run(["reload"], answer: refusal)
        == SettleProcess(code: 78, output: "", errors: "settle: a.yaml:1:2: wrong\n")
    )
  }

  @Test func `control characters from a gateway are escaped`() throws {
    let result = try run(["flush"], answer: Self.failure(.badValue, "a\u{1B}[2Jb\nc"))
    #expect(result.errors == "settle: a\\u{1b}[2Jb\nc\n")
  }

  @Test func `watched events are printed one per line until the gateway ends`() throws {
    let events = Self.phases([.accepted, .sent]).map { #"{"watch":null,"event":\#($0)}"# }
    let refusal = Self.failure(.stopping, "the gateway ends")
    let result = try run(["watch", "--json"], answer: events + refusal)
    #expect(result.output == Self.phases([.accepted, .sent]).map { "\($0)\n" }.joined())
    #expect(result.code == 69)
  }

  private static let recorded = [
    #"{"at":0.5,"key":"a/b","set":40,"source":"mqtt"}"#,
    #"{"at":120,"key":"a/b","set":"on","source":"cli","now":true}"#,
    #"{"at":120,"key":"a/c","cancel":true,"source":"http"}"#,
  ]

  @Test func `recorded changes are printed one per line, unchanged, for the given time`() throws {
    let answer = Self.recorded.map { #"{"record":null,"change":\#($0)}"# }
    let result = try run(["record", "--for", "300ms"], answer: answer)
    #expect(result.output == Self.recorded.map { "\($0)\n" }.joined())
    #expect(result.errors == "")
    #expect(result.code == 0)
  }

  @Test func `a recording reports a lost gateway and keeps its lines`() throws {
    let listener = try FakeGateway { _ in nil }
    let result = try SettleProcess.run(
      ["record"],
      environment: ["SETTLE_SOCKET=\(listener.path)"]
    )
    #expect(result.errors == "settle: the gateway closed the connection; 0 changes recorded\n")
    #expect(result.code == 69)
  }

  @Test func `without a gateway the exit code is 69`() throws {
    let folder = try makeFolder()
    defer { unsafe rmdir(folder) }
    let result = try SettleProcess.run(
      ["set", "a/b", "1"],
      environment: ["SETTLE_SOCKET=\(folder)/no.sock"]
    )
    #expect(
      result
        == SettleProcess(
          code: 69,
          output: "",
          errors: "settle: no gateway answers at \(folder)/no.sock;"
            + " start it with \"settle run\"\n"
        )
    )
  }

  private static let mistakes: [([String], String)] = [
    (["sett"], "settle: unknown command \"sett\"; did you mean \"set\"?\nSee \"settle --help\".\n"),
    (["set", "a/b"], "settle set: VALUE is missing\nSee \"settle set --help\".\n"),
    (
      ["set", "a/b", "1", "--wiat"],
      "settle set: unknown option \"--wiat\"; did you mean \"--wait\"?\nSee \"settle set --help\".\n"
    ),
    (
      ["set", "a/b", "1", "--ttl", "5"],
      "settle set: --ttl needs a unit, found \"5\"; did you mean \"5s\" or \"5ms\"?\n"
        + "See \"settle set --help\".\n"
    ),
  ]

  @Test func `settle alone shows its commands, and exits with 64`() throws {
    let help = try SettleProcess.run(["--help"])
    #expect(help.output.contains("  set ") && help.code == 0)
    #expect(
      try SettleProcess.run([]) == SettleProcess(code: 64, output: help.output, errors: "")
    )
  }

  @Test(arguments: mistakes)
  func `wrong usage is 64`(arguments: [String], errors: String) throws {
    #expect(
      try SettleProcess.run(arguments) == SettleProcess(code: 64, output: "", errors: errors)
    )
  }

  @Test func `a step that is not a number is a bad value`() throws {
    #expect(
      try SettleProcess.run(["step", "a/b", "1,5"])
        == SettleProcess(
          code: 65,
          output: "",
          errors: "settle: N must be a number, found \"1,5\"; did you mean \"1.5\"?\n"
        )
    )
  }

  /// The commands in the lists of `settle --help`, in their order.
  private static func commands() throws -> [String] {
    let help = try SettleProcess.run(["--help"]).output
    let lists = try help.prefix(upTo: #require(help.firstRange(of: "OPTIONS:")).lowerBound)
    return lists.split(separator: "\n").filter { $0.hasPrefix("  ") && !$0.hasPrefix("   ") }
      .compactMap { $0.split(separator: " ").first.map(String.init) }
  }

  @Test func `a word far from every command is answered with all of them`() throws {
    let commands = try Self.commands()
    #expect(commands.count > 10)
    #expect(
      try SettleProcess.run(["xylophone"])
        == SettleProcess(
          code: 64,
          output: "",
          errors: "settle: unknown command \"xylophone\"; there are "
            + commands.joined(separator: ", ") + "\nSee \"settle --help\".\n"
        )
    )
  }

  @Test func `every command has help with two examples`() throws {
    for command in try Self.commands() {
      let result = try SettleProcess.run([command, "--help"])
      #expect(result.code == 0)
      #expect(result.output.contains("USAGE: settle \(command)"))
      let examples = result.output.split(separator: "EXAMPLES:\n").last ?? ""
      let lines = examples.split(separator: "\n").filter { !$0.hasPrefix("   ") }
      #expect(lines.count >= 2, "\(command)")
      #expect(lines.allSatisfy { $0.contains("settle") }, "\(command)")
      #expect(result.output.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(command)")
    }
  }

  @Test func `a gateway that does not know status must be restarted`() throws {
    let answer = Self.failure(.unknownMember, #"unknown member "status""#)
    let result = try run(["status"], answer: answer)
    #expect(result.code == 1)
    #expect(result.output.contains("older than this program"), "\(result)")
    #expect(result.output.contains("-> Restart the gateway"))
  }

  @Test func `a gateway of another version is well but for that`() throws {
    let report = StatusReport(version: "0.0.1", isRunning: true)
    let answer = [String(decoding: ControlReply.status(report, id: nil).line, as: UTF8.self)]
    let result = try run(["status", "--json"], answer: answer)
    #expect(result.code == 1)
    #expect(result.output.contains("the gateway is version 0.0.1, this program is"), "\(result)")
  }
}
