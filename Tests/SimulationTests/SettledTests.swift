// Settle
// SPDX-License-Identifier: Apache-2.0

import TestBroker
import Testing

/// The built program, from its arguments to its exit code.
@Suite(.blocking) struct SettledTests {
  private static let changes = """
    {"key":"a","set":1,"at":0}
    {"key":"a","set":2,"at":250}
    {"key":"a","set":3,"at":500}

    """

  @Test(arguments: [
    (["LC_ALL": "C.UTF-8"], "●"), (["LANG": "de_DE.utf8"], "●"), (["LC_ALL": "C"], "o"),
    (["LC_ALL": "C", "LANG": "C.UTF-8"], "o"), ([:], "o"),
  ])
  func `a plot has the marks of the locale`(environment: [String: String], mark: String) throws {
    let run = try SettledRun(
      ["simulate", "--plot"],
      input: #"{"key":"a","set":1,"at":0}"#,
      environment: environment
    )
    #expect(run.output.contains(mark))
    #expect((mark == "o") == run.output.utf8.allSatisfy { $0 < 0x80 })
  }

  @Test(arguments: [
    ([], [#"{"at":800,"key":"a","value":3,"collapsed":2}"#]),
    (
      ["--delay", "200ms"],
      [
        #"{"at":200,"key":"a","value":1,"collapsed":0}"#,
        #"{"at":450,"key":"a","value":2,"collapsed":0}"#,
        #"{"at":700,"key":"a","value":3,"collapsed":0}"#,
      ]
    ),
    (
      ["--leading"],
      [
        #"{"at":0,"key":"a","value":1,"collapsed":0}"#,
        #"{"at":800,"key":"a","value":3,"collapsed":1}"#,
      ]
    ),
    (
      ["--max-wait=400ms"],
      [
        #"{"at":400,"key":"a","value":2,"collapsed":1}"#,
        #"{"at":800,"key":"a","value":3,"collapsed":0}"#,
      ]
    ),
    (
      ["--delay=10ms", "--min-interval=600ms"],
      [
        #"{"at":10,"key":"a","value":1,"collapsed":0}"#,
        #"{"at":610,"key":"a","value":3,"collapsed":1}"#,
      ]
    ),
    (["--max-wait", "none", "-"], [#"{"at":800,"key":"a","value":3,"collapsed":2}"#]),
    (["--delay", "0", "./changes"], [#"{"at":7,"key":"f","value":1,"collapsed":0}"#]),
  ])
  func `simulate plays a file or standard input under the policy of its flags`(
    flags: [String],
    lines: [String]
  ) throws {
    let run = try SettledRun(
      ["simulate"] + flags,
      input: Self.changes,
      files: ["changes": #"{"key":"f","set":1,"at":7}"#]
    )
    #expect(run.errors.isEmpty)
    #expect(run.code == 0)
    #expect(run.output.split(separator: "\n").map(String.init) == lines)
  }

  @Test func `simulate with devices uses their types, policies and urgent values`() throws {
    let devices = """
      blind:
        profile: zigbee2mqtt/cover
        topic: zigbee2mqtt/blind
      """
    let changes = """
      {"key":"blind/position","set":30,"at":0}
      {"key":"blind/position","set":130,"at":10}
      {"key":"blind/tilt","set":1,"at":20}
      {"key":"blind/position","step":5,"at":600}
      {"key":"blind/stop","set":"STOP","at":700}
      """
    let run = try SettledRun(
      ["simulate", "--devices", "./"],
      input: changes,
      files: ["home.yaml": devices]
    )
    #expect(
      run.output == """
        {"at":500,"key":"blind/position","value":30,"collapsed":0}
        {"at":700,"key":"blind/command","value":"STOP","collapsed":0}

        """
    )
    #expect(
      run.errors == """
        settle simulate: line 2: 130 is outside 0 to 100 %
        settle simulate: line 3: device 'blind' has no property 'tilt'; it has position, command

        """
    )
    #expect(run.code == 65)
  }

  @Test(arguments: [
    ([], [2800]), (["--delay=300ms"], [2800]), (["--max-wait=none"], [2800]),
    (["--max-wait=2s"], [2000, 2800]), (["--delay=300ms", "--max-wait=1s"], [1000, 2000, 2800]),
  ])
  func `simulate has a longest wait only if one is stated`(options: [String], runs: [Int]) throws {
    let changes = stride(from: 0, through: 2500, by: 100)
      .map { #"{"key":"a","set":\#($0),"at":\#($0)}"# + "\n" }
    let run = try SettledRun(["simulate"] + options, input: changes.joined())
    let lines = run.output.split(separator: "\n")
    #expect(lines.count == runs.count)
    for (line, at) in zip(lines, runs) { #expect(line.hasPrefix(#"{"at":\#(at),"#), "\(line)") }
  }

  @Test(arguments: [
    (["simulate", "--delay", "5"], Int32(64), #"did you mean "5s" or "5ms"?"#),
    (["simulate", "--dely", "5s"], 64, "--delay"),
    (["simulate", "--devices", "./", "--leading"], 64, "--devices sets the policies"),
    (["simulate", "./none"], 66, "./none: No such file or directory"),
    (["simulate", "--devices", "./none"], 78, "./none"),
    (["demo", "--speed", "0"], 64, "--speed"),
    (["demo", "--script", "./none"], 66, "No such file"),
    (["simulte"], 64, "simulate"),
  ])
  func `a mistake in the arguments is explained on standard error`(
    arguments: [String],
    code: Int32,
    message: String
  ) throws {
    let run = try SettledRun(arguments)
    #expect(run.code == code)
    #expect(run.errors.contains(message), "\(run.errors)")
    #expect(run.output.isEmpty)
  }

  @Test func `check prints the counts of what it read`() throws {
    let run = try SettledRun(
      ["check", "--config", "./settings"],
      files: [
        "settings": "devices: .\n",
        "home.yaml": "lamp: {profile: zigbee2mqtt/light, topic: zigbee2mqtt/lamp}\n",
      ]
    )
    #expect(run.code == 0)
    #expect(run.output.hasPrefix("OK: 1 device, 5 properties ("), "\(run.output)")
    #expect(run.errors.isEmpty)
  }

  @Test(arguments: [(0, ")"), (1, ", 1 file of profiles)"), (3, ", 3 files of profiles)")])
  func `check prints the files it read and counts profile files`(
    count: Int,
    ending: String
  ) throws {
    var files = [
      "settings": "devices: .\n",
      "home.yaml": "lamp: {profile: zigbee2mqtt/light, topic: zigbee2mqtt/lamp}\n",
    ]
    for number in 0..<count { files["profiles/own\(number).yaml"] = "" }
    let run = try SettledRun(["check", "--config", "./settings"], files: files)
    let line = try #require(run.output.split(separator: "\n").first)
    #expect(line.hasPrefix("OK: "))
    #expect(line.hasSuffix("home.yaml" + ending), "\(line)")
    #expect(!line.contains("own0"))
  }

  @Test(arguments: [[], ["--json"]])
  func `check prints every problem and ends with 78`(flags: [String]) throws {
    let run = try SettledRun(
      ["check", "--config", "./settings"] + flags,
      files: [
        "settings": "devises: .\nttl: soon\ndevices: .\n",
        "home.yaml": "lamp: {profile: zigbee2mqtt/lihgt, topic: zigbee2mqtt/lamp}\n",
      ]
    )
    #expect(run.code == 78)
    let lines = run.output.split(separator: "\n")
    #expect(lines.count == 3, "\(run.output)")
    #expect(run.output.contains("devices"))
    #expect(run.output.contains("zigbee2mqtt/light"))
    #expect(lines.allSatisfy { $0.hasPrefix("{") } == !flags.isEmpty)
  }

  @Test func `demo plays a script over a real broker and ends when the devices agree`() throws {
    let script = (1...40).map {
      #"{"key":"desk-lamp/brightness","set":\#($0),"at":\#($0 * 10)}"#
    }
    let run = try SettledRun(
      ["demo", "--script", "./script"],
      files: ["script": script.joined(separator: "\n")]
    )
    #expect(run.errors.isEmpty)
    #expect(run.code == 0, "\(run.output)")
    #expect(run.output.contains("40 changes in, 1 message out"), "\(run.output)")
    #expect(run.output.contains(#"zigbee2mqtt/desk_lamp/set {"brightness":40}"#))
    #expect(!run.output.contains("\u{1B}"))
  }

  @Test(arguments: ["zigbee2mqtt", "zigbee2mqtt/"])
  func `a convention lists its profiles`(name: String) throws {
    let run = try SettledRun(["profiles", name])
    #expect(run.code == 0)
    let names = run.output.split(separator: "\n").map { $0.prefix { $0 != "\t" } }
    #expect(names.contains("zigbee2mqtt/light"))
    #expect(names.allSatisfy { $0.hasPrefix("zigbee2mqtt/") })
    let json = try SettledRun(["profiles", name, "--json"])
    #expect(json.output.split(separator: "\n").count == names.count)
    let wrong = try SettledRun(["profiles", "zigbee2mqtt/lihgt"])
    #expect(wrong.code == 65)
    #expect(wrong.errors.contains("did you mean zigbee2mqtt/light?"))
  }
}
