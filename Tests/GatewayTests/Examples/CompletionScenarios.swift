// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Operations
import Simulation
import TestBroker
import Testing
import Values

/// The completions of real shells with `settle completions` and a running gateway.
@Suite(.blocking) struct CompletionScenarios {
  private static let keys = [
    "boiler/mode", "boiler/target_temperature", "desk-lamp/brightness", "desk-lamp/color",
    "desk-lamp/color_mode", "desk-lamp/color_temp", "desk-lamp/power", "hall-blind/command",
    "hall-blind/position",
    "hall-thermostat/mode", "hall-thermostat/target_temperature", "porch-light/brightness",
    "porch-light/power",
  ]
  private static let steppable = [
    "boiler/target_temperature", "desk-lamp/brightness", "desk-lamp/color_temp",
    "hall-blind/position", "hall-thermostat/target_temperature", "porch-light/brightness",
  ]
  private static let files = [
    "changes.ndjson", "my changes.ndjson", "settle.yaml", "s.sock", "s.sock.lock",
  ]
  private static let folders = ["config", "devices", "docs", "home"]

  /// A command line, and what is offered for its last word.
  private struct Row {
    var words: [String]
    var offered: [String]
  }

  private static func house() throws -> ExampleHouse {
    let house = try ExampleHouse(withGateway: true)
    try TextFile.write("", to: house.folder + "/my changes.ndjson")
    return house
  }

  /// What is offered, in order and without the marks that tell a folder, an option's own name, or
  /// what has to be quoted.
  private static func plain(_ offered: [String]) -> Set<String> {
    Set(
      offered.map { word in
        var text = word.filter { $0 != "\\" }
        if text.hasPrefix("--"), let equals = text.firstIndex(of: "=") {
          text = String(text[text.index(after: equals)...])
        }
        return text.hasSuffix("/") ? String(text.dropLast()) : text
      }
    )
  }

  private static func isMissing(_ shell: CompletingShell) -> Bool {
    if !shell.isInstalled { print("Skipped: \(shell) is not installed") }
    return !shell.isInstalled
  }

  @Test(arguments: CompletingShell.allCases)
  func `every command and every option is offered`(shell: CompletingShell) throws {
    guard !Self.isMissing(shell) else { return }
    let commands = try ProgramHelp.commands()
    let helps = try commands.map { try ProgramHelp("settle", [$0, "--help"]) }
    let lines = [[""], ["-"]] + commands.map { [$0, "--"] }
    let offers = try shell.offers(for: lines, in: Self.house())
    try #require(offers.count == lines.count)
    #expect(Set(offers[0]).subtracting(["--help", "--version"]) == Set(commands))
    #expect(Set(offers[1]).isSuperset(of: ["--help", "--version"]))
    for (index, help) in helps.enumerated() {
      let offered = Set(offers[index + 2].map { String($0.prefix { $0 != "=" }) })
      #expect(offered == Set(help.optionNames), "\(commands[index])")
      #expect(offered.count > 0)
    }
  }

  /// What each option's value and each first argument is, by how the help writes it.
  private static func rows() throws -> [Row] {
    var rows: [Row] = []
    for command in try ProgramHelp.commands() {
      let help = try ProgramHelp("settle", [command, "--help"])
      for option in help.options {
        let parts = option.split(separator: "--").last?.split(whereSeparator: {
          " [=]".contains($0)
        })
        guard let parts, parts.count == 2 else { continue }
        let value = String(parts[1])
        let isOptional = option.contains("[=")
        let words = [command] + (isOptional ? ["--\(parts[0])="] : ["--\(parts[0])", ""])
        rows.append(Row(words: words, offered: offered(forValue: value)))
        if !isOptional {
          rows.append(Row(words: [command, "--\(parts[0])="], offered: offered(forValue: value)))
        }
      }
      let arguments = help.sections.first { $0.title == "ARGUMENTS" }?.entries.map(\.name) ?? []
      guard let first = arguments.first else { continue }
      let offered = try offered(forArgument: first, of: command)
      rows.append(Row(words: [command, ""], offered: offered))
      if arguments.count > 1, help.optionNames.contains("--timeout") {
        rows.append(Row(words: [command, "--json", ""], offered: offered))
        rows.append(Row(words: [command, "--timeout", "5s", ""], offered: offered))
        rows.append(Row(words: [command, "--timeout=5s", ""], offered: offered))
      }
    }
    return rows + values
  }

  /// The second argument of changes.
  private static let values = [
    Row(words: ["set", "boiler/mode", ""], offered: ["auto", "heat", "off"]),
    Row(words: ["set", "--timeout", "5s", "boiler/mode", "--json", "h"], offered: ["heat"]),
    Row(words: ["set", "desk-lamp/power", ""], offered: ["on", "off"]),
    Row(words: ["set", "desk-lamp/brightness", ""], offered: []),
    Row(words: ["set", "desk-lamp/power", "on", ""], offered: []),
    Row(words: ["set", "boiler", ""], offered: ["mode=", "target_temperature="]),
    Row(words: ["set", "boiler", "mode=off", "t"], offered: ["target_temperature="]),
    Row(words: ["wait", "boiler/mode", "a"], offered: ["auto"]),
    Row(words: ["step", "desk-lamp/brightness", ""], offered: []),
    Row(words: ["set", "--socket", "/none", ""], offered: []),
    Row(words: ["set", "--socket=/none", ""], offered: []),
  ]

  private static func offered(forValue name: String) -> [String] {
    switch name {
    case "F", "FILE", "PATH": files + folders
    case "DIR": folders
    case "D|none": ["none"]
    case "P": Phase.allCases.map(\.rawValue)
    case "AREA": ["hall"]
    case "CONVENTION": ConventionName.allCases.map(\.rawValue)
    default: name.contains("|") ? name.split(separator: "|").map(String.init) : []
    }
  }

  private static func offered(forArgument name: String, of command: String) throws -> [String] {
    switch name {
    case "KEY" where command == "set":
      keys.filter { $0 != "desk-lamp/color_mode" } + [
        "boiler", "desk-lamp", "hall-blind", "hall-thermostat", "porch-light",
      ]
    case "KEY" where command == "step": steppable
    case "KEY" where command == "toggle": ["desk-lamp/power", "porch-light/power"]
    case "KEY", "PATTERN": keys
    case "FILE": files + folders
    case "NAME" where command == "profiles": ProfileListing.names
    case "NAME" where command == "scene": ["evening"]
    case "KIND": ["settle", "devices"]
    case "SHELL": CompletingShell.allCases.map(\.rawValue)
    case "COMMAND": try ProgramHelp.commands()
    default: []
    }
  }

  @Test(arguments: CompletingShell.allCases)
  func `files, folders, words and keys are offered where they belong`(
    shell: CompletingShell
  ) throws {
    guard !Self.isMissing(shell) else { return }
    let rows = try Self.rows()
    #expect(rows.count > 60)
    let offers = try shell.offers(for: rows.map(\.words), in: Self.house())
    try #require(offers.count == rows.count)
    for (row, offered) in zip(rows, offers) {
      // An option's own name may stand before its value.
      #expect(Self.plain(offered) == Set(row.offered), "settle \(row.words)")
    }
  }

  @Test func `of more than a thousand keys the devices are offered first`() throws {
    let house = try ExampleHouse(withGateway: true)
    let many = """
      sensor-$n:
        for: [1..600]
        properties:
          level: {type: integer, range: [0, 9], command: {topic: fleet/$n/level}}
          power: {type: boolean, command: {topic: fleet/$n/power}}

      """
    try TextFile.write(many, to: house.folder + "/devices/many.yaml")
    let run = try ExampleRun("settle reload", in: house)
    try #require(run.waitForExit() == 0, "\(run.output) \(run.errors)")
    let lines = [
      ["get", ""], ["toggle", ""], ["get", "sensor-59"], ["get", "sensor-599"],
      ["get", "sensor-599/"],
    ]
    let all = (1...600).map { "sensor-\($0)" }
    for shell in CompletingShell.allCases where !Self.isMissing(shell) {
      let offers = try shell.offers(for: lines, in: house)
      try #require(offers.count == lines.count)
      let devices = Set(Self.keys.map { String($0.prefix { $0 != "/" }) })
      #expect(offers[0].allSatisfy { $0.hasSuffix("/") })
      #expect(Self.plain(offers[0]) == devices.union(all))
      // 602 can be toggled: not too many.
      #expect(Self.plain(offers[1]).isSuperset(of: all.map { "\($0)/power" }))
      let keys = ([59] + Array(590...599)).flatMap { ["sensor-\($0)/level", "sensor-\($0)/power"] }
      #expect(Self.plain(offers[2]) == Set(keys))
      for offered in offers[3...] {
        #expect(Self.plain(offered) == ["sensor-599/level", "sensor-599/power"])
      }
    }
  }

  @Test func `without a gateway no key is offered, and nothing is printed`() throws {
    let house = try ExampleHouse(withGateway: false)
    for shell in CompletingShell.allCases where !Self.isMissing(shell) {
      #expect(try shell.offers(for: [["get", ""]], in: house) == [[]])
    }
  }

  // MARK: - A person's Tab

  private static let typed: [(typed: String, completed: String)] = [
    ("settle simu", "settle simulate"),
    ("settle run --dev", "settle run --devices"),
    ("settle set --wait=con", "settle set --wait=confirmed"),
    ("settle simulate cha", "settle simulate changes.ndjson"),
    ("settle get boiler/m", "settle get boiler/mode"),
    ("settle check --config my", #"settle check --config my\ changes.ndjson"#),
  ]

  /// How each shell is begun without a person's settings, with the script as it is installed.
  private static let beginnings: [(CompletingShell, String)] = [
    (.bash, "exec bash --norc"),
    (.zsh, "exec zsh -f"),
    (.fish, "exec fish --no-config"),
  ]

  private static let scripts: [CompletingShell: [String]] = [
    .bash: ["source <(settle completions bash)"],
    // From a folder in fpath, as make install puts it: the first Tab loads it.
    .zsh: [
      "mkdir -p functions; settle completions zsh >functions/_settle",
      "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -d $HOME/dump",
    ],
    .fish: ["settle completions fish | source"],
  ]

  @Test func `zsh says what commands and options are for`() throws {
    guard !Self.isMissing(.zsh) else { return }
    let house = try Self.house()
    var variables = house.addresses
    variables["HOME"] = house.folder + "/home"
    let terminal = try TmuxTerminal(columns: 120, rows: 40, environment: variables)
    try terminal.enter("cd \(house.folder); export PATH=\(house.environment["PATH"] ?? "")")
    try terminal.enter("exec zsh -f")
    for line in Self.scripts[.zsh] ?? [] { try terminal.enter(line) }
    try terminal.enter("echo begun")
    try terminal.waitFor("the shell") { $0.contains("begun") }
    // Of settle itself, and of settled.
    for (typed, row) in [
      ("settle s", "scene        Set the values of a scene, all at one instant."),
      ("settle check --", "--devices  The folder with the device files"),
    ] {
      try terminal.type(typed)
      try terminal.press("Tab")
      try terminal.waitForRow(row)
      try terminal.press("C-u")
    }
  }

  @Test(arguments: beginnings)
  func `Tab completes the typed text`(shell: CompletingShell, beginning: String) throws {
    guard !Self.isMissing(shell) else { return }
    let house = try Self.house()
    var variables = house.addresses
    variables["HOME"] = house.folder + "/home"
    let terminal = try TmuxTerminal(columns: 120, rows: 40, environment: variables)
    try terminal.enter("cd \(house.folder); export PATH=\(house.environment["PATH"] ?? "")")
    try terminal.enter(beginning)
    for line in Self.scripts[shell] ?? [] { try terminal.enter(line) }
    try terminal.enter("echo begun")
    try terminal.waitFor("the shell") { $0.contains("begun") }
    for (typed, completed) in Self.typed {
      try terminal.type(typed)
      try terminal.press("Tab")
      // A word that is whole is followed by a blank; what a shell merely suggests is not.
      try terminal.type("Z")
      try terminal.waitForRow(completed + " Z")
      try terminal.press("C-u")
    }
  }
}
