// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import TestBroker
import Testing

/// Runs every command line in help, documentation and device files.
///
/// New examples are included automatically: each must end with 0, or state in its help how it is
/// interrupted.
@Suite(.blocking) struct ExampleScenarios {
  // MARK: - What is known of some

  /// What is not run, and why; each begins a line that is documented, and none is `settle`.
  private static let skipped: [(start: String, reason: String)] = [
    ("make test", "it is what runs this test"),
    ("make demo", "it builds for release, and then is settle demo, which is run"),
    ("sudo apt-get ", "it installs what the machine has, or nothing would compile"),
    ("make bench", "it builds for release and measures for minutes; make bench-guard is run"),
    ("Benchmarks/bench", "it writes what make bench has measured"),
    ("make app", "it builds for release; make check-app plays what it makes"),
    ("make deb", "it builds for release; make check-deb installs what it makes"),
    ("sudo apt install ", "make check-deb installs the package"),
    ("sudo settle init", "it writes into /etc; make check-deb runs it as root"),
    ("sudo systemctl ", "it needs a machine that systemd has started"),
    ("docker compose ", "it needs a container engine"),
  ]

  /// Lines that go on until they are ended: how they begin, what tells that they are at work, the
  /// signal that ends them, and what they end with.
  private static let endless: [Endless] = [
    Endless("settle run", errors: "Running", end: SIGTERM, code: 0),
    Endless("settled run", errors: "Running", end: SIGTERM, code: 0),
    Endless("settle watch", output: "desk-lamp/brightness\taccepted", end: SIGINT, code: 130),
    Endless("settle watch boiler --json", output: #""confirmed""#, end: SIGINT, code: 130),
    Endless("settle watch --phase", output: "brightness\tsent\t", end: SIGINT, code: 130),
    Endless("settle demo --keep", output: "Ctrl-C ends it", end: SIGINT, code: 0),
    Endless("curl -sN ", ready: "retry: ", output: #"data: {"id":"#, end: SIGINT, code: 130),
  ]

  struct Endless: Sendable {
    var start: String
    /// What the output has before anything happens.
    var ready = ""
    var output = ""
    var errors = ""
    var signal: Int32
    var code: Int32

    init(
      _ start: String,
      ready: String = "",
      output: String = "",
      errors: String = "",
      end: Int32,
      code: Int32
    ) {
      self.start = start
      self.ready = ready
      self.output = output
      self.errors = errors
      signal = end
      self.code = code
    }
  }

  /// Texts that the output of a line has, beside what a document shows.
  private static let shown: [String: [String]] = [
    "settle set boiler/target_temperature 21.5 --wait": ["\tsent\t21.5\t", "\tconfirmed\t21.5\t"],
    "settle set desk-lamp/brightness 40 --wait": ["\tsent\t40\t", "\tconfirmed\t40\t"],
    "settle step boiler/target_temperature -0.5 --wait": ["\tconfirmed\t18.5\t"],
    "settle toggle desk-lamp/power --wait=sent": ["\tsent\ttrue\t"],
    "settle pipe < changes.ndjson": [
      #""phase":"accepted""#, #""key":"boiler/target_temperature""#,
    ],
    #"yes '{"key":"desk-lamp/brightness","step":1}' | head -200 | settle pipe"#: [
      #""value":254"#
    ],
    "settle get": ["desk-lamp/brightness\t", "boiler/target_temperature\t", "porch-light/"],
    "settle get desk-lamp": ["desk-lamp/power\t"],
    "settle get --value desk-lamp/brightness": ["100\n"],
    "settle step desk-lamp/brightness -10% --wait=settled": ["\tconfirmed\t75\t"],
    "settle get --json | jq -r .actual": ["100\n"],
    "settle status": ["runs for", "is well", "mqtt.url "],
    "settle describe desk-lamp/brightness": ["sends to ", "example "],
    "settle describe boiler/target_temperature 21.5": ["21.5"],
    "settle set desk-lamp/brightness 40 --dry-run": ["/set {\"brightness\":40}\n"],
    "settle devices": ["desk-lamp\t", "porch-light\t"],
    "settle profiles": ["zigbee2mqtt/light\t"],
    "settle profiles zigbee2mqtt/light": ["brightness\tinteger\t0 to 254\t$topic/set"],
    "settle flush": ["flushed 0"],
    "settle flush 'desk-lamp/*'": ["flushed 0"],
    "settle cancel desk-lamp/brightness": ["cancelled 0"],
    "settle cancel '*'": ["cancelled 0"],
    "settle init --config home --yes": ["Zigbee2MQTT: 1 device, ", "Written: home/settle.yaml"],
    "settle check": ["OK: 5 devices"],
    "settle check --config config/settle.yaml --json": [#""ok":true"#, #""devices":5"#],
    "settle check && settle reload": ["OK: 5 devices", "\n5 devices, "],
    "settle reload": ["5 devices, "],
    "settle manual set": [".TH SETTLE\\-SET 1", ".SH EXAMPLES"],
    "settle manual run": [".TH SETTLE\\-RUN 1", ".SH EXAMPLES"],
    "settle completions bash": ["complete -F _settle settle", "_settle_passed()"],
    "settle simulate changes.ndjson": [
      #"{"at":420,"key":"desk-lamp/brightness","value":40,"collapsed":1}"#
    ],
    "settle simulate --devices devices changes.ndjson": [#""value":21.5"#],
    "settle simulate --plot changes.ndjson": ["desk-lamp/brightness"],
    "settle advise changes.ndjson": [
      "desk-lamp/brightness: 2 changes in 1 gesture", "    brightness:",
    ],
    "settle advise --config settle.yaml --key 'desk-lamp/*' changes.ndjson": ["(now)", "queued"],
    "settle advise --lane rate=2/s,burst=3 --json < changes.ndjson": [#""queued":"#],
    "settle demo --script changes.ndjson": ["3 changes in, 2 messages out"],
  ]

  /// Files that a line writes.
  private static let written: [String: (file: String, text: String)] = [
    "settle completions fish > ~/.config/fish/completions/settle.fish": (
      "home/.config/fish/completions/settle.fish", "complete -c settle -n"
    ),
    "settle manual > settle.1": ("settle.1", ".TH SETTLE 1"),
    "settle manual check > settle-check.1": ("settle-check.1", ".TH SETTLE\\-CHECK 1"),
  ]

  /// What a line needs before it.
  private static let before: [String: String] = [
    "curl -s localhost:8484/v1/devices/boiler/target_temperature":
      "settle set boiler/target_temperature 21.5 --wait >before.txt",
    "settle wait boiler/target_temperature 21.5 --timeout 30s":
      "settle set boiler/target_temperature 21.5 >before.txt",
  ]

  /// Programs that come with no package of Settle's; a line that uses one is run where it is.
  private static let foreignTools = ["jq"]

  // MARK: - The lines

  private enum Kind { case ending, endless, demo, screen, asking, skipped }

  private static func kind(of example: DocumentedExample) -> Kind {
    let line = example.line
    if skipped.contains(where: { line.hasPrefix($0.start) }) { return .skipped }
    if line.hasPrefix("settle demo") { return .demo }
    if line.hasPrefix("settle control") { return .screen }
    if line.hasPrefix("settle init"), !line.contains("--yes") { return .asking }
    return endless.contains { line.hasPrefix($0.start) } ? .endless : .ending
  }

  private static func examples(_ wanted: Kind) throws -> [DocumentedExample] {
    try ExampleCollection.all().filter { kind(of: $0) == wanted }
  }

  /// The row for a line, if it goes on; the longest start counts.
  private static func endless(_ example: DocumentedExample) -> Endless? {
    let rows = endless.filter { example.line.hasPrefix($0.start) }
    return rows.max { $0.start.count < $1.start.count }
  }

  @Test func `nothing is listed here that is not documented`() throws {
    let lines = try ExampleCollection.all().map(\.line)
    #expect(lines.count > 60, "\(lines)")
    let starts = Self.skipped.map(\.start) + Self.endless.map(\.start)
    for start in starts {
      #expect(lines.contains { $0.hasPrefix(start) }, "\(start)")
    }
    let known = Array(Self.shown.keys) + Array(Self.written.keys) + Array(Self.before.keys)
    for line in known {
      #expect(lines.contains(line), "\(line)")
    }
    #expect(Self.skipped.allSatisfy { !$0.start.hasPrefix("settle") && !$0.reason.isEmpty })
    for tool in Self.foreignTools {
      #expect(lines.contains { $0.contains("| \(tool) ") }, "\(tool)")
    }
  }

  @Test(arguments: try examples(.ending))
  func `an example works as documented`(example: DocumentedExample) throws {
    for tool in Self.foreignTools where example.line.contains("| \(tool) ") {
      guard ToolPath.has(tool) else {
        print("Skipped: \(example.line): \(tool) is not installed")
        return
      }
    }
    let house = try ExampleHouse(withGateway: example.needsGateway)
    if let line = Self.before[example.line] {
      #expect(try ExampleRun(line, in: house).waitForExit() == 0)
    }
    let run = try ExampleRun(example.line, in: house)
    let goesOn = Self.saysHowItIsInterrupted(example.line)
    var code = run.waitForExit(within: goesOn ? .seconds(10) : .patience)
    if code == nil, goesOn {
      run.signal(SIGINT)
      code = run.waitForExit().map { $0 == 130 ? 0 : $0 }
    }
    let told = Comment(rawValue: "\(example)\n\(run.output)\n\(run.errors)")
    #expect(code != nil, "\(example) goes on, and its help speaks of no Ctrl-C or interruption")
    #expect(code == 0, told)
    // Within a pipeline the exit code does not tell.
    #expect(!run.errors.split(separator: "\n").contains { $0.hasPrefix("settle") }, told)
    for text in Self.shown[example.line] ?? [] {
      #expect(run.output.contains(text), told)
    }
    if let (file, text) = Self.written[example.line] {
      #expect(TextFile.read("\(house.folder)/\(file)")?.contains(text) == true, told)
    }
    #expect(DocumentedOutput(example.output).matches(run.output), told)
  }

  @Test(arguments: try examples(.endless))
  func `an endless example works as documented, and ends on its signal`(
    example: DocumentedExample
  ) throws {
    let row = try #require(Self.endless(example))
    let house = try ExampleHouse(withGateway: example.needsGateway)
    let run = try ExampleRun(example.line, in: house)
    if example.needsGateway {
      #expect(run.waitFor { output, _ in output.contains(row.ready) })
      // What is watched has to happen, and not before somebody watches: again and again.
      var number = 0
      let isWatched = run.waitFor { output, _ in
        if output.contains(row.output) { return true }
        number += 1
        let nudge = try? ExampleRun(
          "settle set desk-lamp/brightness \(number) --now;"
            + "settle set boiler/target_temperature \(number % 2 + 20) --now",
          in: house
        )
        return nudge?.waitForExit() != 0
      }
      #expect(isWatched)
    } else {
      #expect(run.waitFor { $1.contains(row.errors) })
      try house.awaitGateway()
      // It is the gateway of the house now.
      let change = try ExampleRun("settle set desk-lamp/brightness 40 --wait", in: house)
      #expect(change.waitForExit() == 0)
    }
    run.signal(row.signal)
    #expect(run.waitForExit() == row.code)
    let told = Comment(rawValue: "\(example)\n\(run.output)\n\(run.errors)")
    #expect(run.output.contains(row.output), told)
    #expect(run.errors.contains(row.errors), told)
    #expect(DocumentedOutput(example.output).isBeginning(of: run.output), told)
  }

  @Test func `the examples of the demo work as documented`() throws {
    let house = try ExampleHouse(withGateway: false)
    // Each takes its time, so all at once.
    let runs = try Self.examples(.demo).map {
      (example: $0, run: try ExampleRun($0.line, in: house))
    }
    #expect(runs.count >= 3)
    for (example, run) in runs {
      if let row = Self.endless(example) {
        #expect(run.waitFor { output, _ in output.contains(row.output) })
        run.signal(row.signal)
      }
      let code = run.waitForExit()
      let told = Comment(rawValue: "\(example)\n\(run.output)\n\(run.errors)")
      #expect(code == 0, told)
      #expect(run.errors.isEmpty, told)
      for text in Self.shown[example.line] ?? [] { #expect(run.output.contains(text), told) }
    }
    let whole = try #require(runs.first { $0.example.line == "settle demo" })
    let shown = try #require(
      try ExampleCollection.all().first { $0.line == "make demo" && !$0.output.isEmpty }
    )
    // What does not depend on the machine; .ci/check-capture compares all of it.
    let fixed = shown.output.compactMap { line -> Substring? in
      if line.hasPrefix("Every device") { return line[...] }
      guard let time = line.firstRange(of: " s  "), !line.contains("/") else { return nil }
      return line[time.upperBound...]
    }
    #expect(fixed.count >= 2)
    for text in fixed { #expect(whole.run.output.contains(text), "\(text)") }
  }

  @Test(arguments: try examples(.screen))
  func `an example of the full screen works as documented`(example: DocumentedExample) throws {
    let house = try ExampleHouse(withGateway: true)
    let terminal = try TmuxTerminal(columns: 80, rows: 24, environment: house.addresses)
    // tmux passes the PATH of its caller to each shell.
    try terminal.enter("PATH=\(house.environment["PATH"] ?? ""); clear")
    try terminal.enter(example.line + #"; echo "ended $?""#)
    try terminal.waitForRow("PROPERTY", "TARGET", "ACTUAL", "STATE", "CHANGES")
    try terminal.waitForRow("connected")
    try terminal.waitForRow("target_temperature", " 19")
    for line in example.output where line.hasPrefix(" PROPERTY") {
      try terminal.waitForRow(line)
    }
    try terminal.press("q")
    try terminal.waitForRow("ended 0")
  }

  @Test(arguments: try examples(.asking))
  func `an example that asks works with the suggested answers`(example: DocumentedExample) throws {
    let house = try ExampleHouse(withGateway: false)
    // At a pace that a person has: a terminal that is full of input that nobody reads shows no
    // output.
    let answers = "while sleep 0.1; do echo; done"
    let run = try ExampleRun("\(answers) | script -qec '\(example.line)' /dev/null", in: house)
    let told = { Comment(rawValue: "\(example)\n\(run.output)\n\(run.errors)") }
    #expect(run.waitForExit() == 0, told())
    #expect(run.output.contains("Write these files? [Y/n]"), told())
    #expect(run.output.contains("Zigbee2MQTT: 1 device, "), told())
  }

  /// Whether the help of the command says that it goes on until somebody ends it.
  private static func saysHowItIsInterrupted(_ line: String) -> Bool {
    let words = line.split(separator: " ").map(String.init)
    guard words.count > 1, words[0] == "settle",
      let help = try? ProgramHelp("settle", [words[1], "--help"])
    else { return false }
    return ["interrupt", "Ctrl-C"].contains { help.text.contains($0) }
  }
}
