// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import TestBroker
import Testing

/// `settle advise`, from its arguments to its exit code.
@Suite(.blocking) struct AdviseCommandTests {
  private static let taps = (0..<10).map {
    #"{"at":\#($0 * 250),"key":"lamp/level","set":\#($0)}"#
  }.joined(separator: "\n")

  private static let home = """
    lamp:
      lane: radio
      properties:
        level:
          type: integer
          range: [0, 100]
          policy: {delay: 700ms}
          command: {topic: lamp/set, payload: $value}
    """

  private static func run(
    _ arguments: [String],
    input: String = taps,
    files: [String: String] = [:],
    locale: String = "C.UTF-8"
  ) throws -> SettledRun {
    try SettledRun(
      ["advise"] + arguments,
      input: input,
      files: files,
      environment: ["LC_ALL": locale]
    )
  }

  @Test(arguments: [[], ["-"], ["./recording"]])
  func `a file or standard input is advised on`(arguments: [String]) throws {
    let run = try Self.run(arguments, files: ["recording": Self.taps])
    #expect(run.code == 0)
    #expect(run.errors.isEmpty)
    #expect(run.output.hasPrefix("lamp/level: 10 changes in 1 gesture\n\n"))
    let lines = run.output.split(separator: "\n").map(String.init)
    let paste = ["lamp:", "  properties:", "    level: {policy: {delay: 300ms, max_wait: 2s}}"]
    #expect(lines.suffix(3) == paste)
    #expect(lines.count { $0.hasPrefix("> ") } == 3, "a row, the legend, and the picture")
    #expect(run.output.contains("●"))
  }

  @Test func `a terminal without UTF-8 gets ASCII`() throws {
    let run = try Self.run([], locale: "C")
    #expect(run.output.utf8.allSatisfy { $0 < 0x80 })
    #expect(run.output.contains(" o"))
  }

  @Test func `JSON has one object per policy, and one suggestion per key`() throws {
    let other = #"{"at":9000,"key":"fan/speed","set":1}"#
    let run = try Self.run(["--json"], input: Self.taps + "\n" + other)
    let rows = try run.output.split(separator: "\n").map {
      try JSONParser.parse(Array($0.utf8).span)
    }
    for key in ["lamp/level", "fan/speed"] {
      let own = rows.filter { $0["key"]?.string == key }
      #expect(own.count { $0["suggested"] == true } == 1)
      for row in own {
        #expect(row["commands"]?.double != nil)
        #expect(row["policy"]?["delay_ms"]?.double != nil)
        #expect(row["final_worst_ms"]?.double != nil)
        #expect(row["wait_worst_ms"]?.double != nil)
        #expect(row["line"]?.string?.hasPrefix("policy: ") == true)
        #expect(row["queued"] == nil)
      }
    }
    #expect(rows.count { $0["key"]?.string == "lamp/level" } > 10)
  }

  @Test func `a key whose changes are far apart is not worth a table`() throws {
    let run = try Self.run(
      ["--key", "fan/*"],
      input: Self.taps + "\n" + #"{"at":9000,"key":"fan/speed","set":1}"#
    )
    #expect(run.output == "fan/speed: 1 change in 1 gesture; every policy sends 1 command\n")
  }

  @Test func `the policy in force and the lane of the settings are used`() throws {
    let run = try Self.run(
      ["--config", "./settle.yaml", "--json"],
      files: [
        "devices/home.yaml": Self.home,
        "settle.yaml": "devices: devices\nlanes: {radio: {rate: 30/m}}\n",
      ]
    )
    #expect(run.errors.isEmpty)
    let rows = try run.output.split(separator: "\n").map {
      try JSONParser.parse(Array($0.utf8).span)
    }
    let own = try #require(rows.first { $0["in_force"] == true })
    #expect(own["policy"]?["delay_ms"] == 700)
    #expect(rows.contains { ($0["queued"]?.double ?? 0) > 0 })
    // Without settings the device's lane has no limit.
    let free = try Self.run(["--devices", "./devices"], files: ["devices/home.yaml": Self.home])
    #expect(free.output.contains("(now)"))
    #expect(!free.output.contains("queued"))
  }

  @Test(arguments: [
    (["./none"], Int32(66), "./none: No such file or directory"),
    (["--lane", "rate=10"], 64, #"did you mean "10/s"?"#),
    (["--lane", "burst=5"], 64, "burst with a rate"),
    (["--lane", "windw=5"], 64, #"did you mean "window"?"#),
    (["--lane", "window=0"], 64, "a window from 1 to 1000"),
    (["--lane", "fast"], 64, "rate=10/s"),
    (["--within", "5"], 64, #"did you mean "5s" or "5ms"?"#),
    (["--key", "lamp/lvl"], 65, "no key 'lamp/lvl'; it has lamp/level"),
    (["--devices", "./none"], 78, "./none"),
  ])
  func `a mistake is explained on standard error`(
    arguments: [String],
    code: Int32,
    message: String
  ) throws {
    let run = try Self.run(arguments)
    #expect(run.code == code)
    #expect(run.errors.contains(message), "\(run.errors)")
    #expect(run.output.isEmpty)
  }

  @Test(arguments: [
    (#"{"at":1,"key":"a/b","set":1}"# + "\nnonsense\n", "line 2: not JSON"),
    (#"{"at":5,"key":"a/b","set":1}"# + "\n\n" + #"{"at":1,"key":"a/b","set":2}"#, "line 3: "),
    (#"{"at":5,"key":"a/b","step":1}"#, "line 1: a/b has no value to count from"),
    ("", "the recording has no changes"),
    (String(repeating: "x\n", count: 13), "3 more lines cannot be used"),
  ])
  func `a bad recording is refused with the lines`(input: String, message: String) throws {
    let run = try Self.run([], input: input)
    #expect(run.code == 65)
    #expect(run.errors.contains("settle advise: " + message), "\(run.errors)")
    #expect(run.output.isEmpty)
  }

  @Test func `a recording is checked by the types of its devices`() throws {
    let run = try Self.run(
      ["--devices", "./"],
      input: #"{"at":0,"key":"lamp/level","set":101}"#,
      files: ["home.yaml": Self.home]
    )
    #expect(run.code == 65)
    #expect(run.errors.contains("line 1: 101 is outside 0 to 100"), "\(run.errors)")
  }
}
