// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import LastOut
import Operations
import TestBroker
import Testing

/// The full screen, in a real terminal, before a real gateway and a real broker.
@Suite(.blocking) struct ScreenScenarios {
  private static let devices = """
    desk-lamp:
      name: Desk lamp
      profile: zigbee2mqtt/light
      topic: zigbee2mqtt/desk_lamp
      properties:
        brightness:
          {policy: {delay: 1500ms, max_wait: none}, confirm: {within: 3s, retries: 0}, display: none}
    boiler:
      name: Boiler
      properties:
        target:
          {type: number, range: [5, 30], step: 0.5, unit: °C, policy: {delay: 60s, max_wait: none},
          command: {topic: boiler/target, payload: $value}}
        mode:
          {type: choice, values: [off, heat], urgent: [off], ends: [target],
          command: {topic: boiler/mode, payload: $value}}

    """
  private let command = "zigbee2mqtt/desk_lamp/set"
  private let state = "zigbee2mqtt/desk_lamp"

  /// A gateway that has heard its lamp, and the screen that shows it.
  private func bench() throws -> Bench {
    let bench = try Bench(devices: Self.devices)
    try bench.broker.start()
    let witness = try bench.witness()
    witness.publish(state, #"{"state":"ON","brightness":100}"#, retain: true)
    try bench.startGateway()
    try #require(witness.waitFor("settle/desk-lamp/brightness", "100"))
    return bench
  }

  private func terminal(
    _ bench: Bench,
    columns: Int = 80,
    rows: Int = 24,
    environment: [String: String] = [:]
  ) throws -> TmuxTerminal {
    var variables = environment
    variables["SETTLE_SOCKET"] = bench.socketPath
    variables["SETTLE"] = BuiltProgram.path("settle")
    return try TmuxTerminal(columns: columns, rows: rows, environment: variables)
  }

  private func started(_ bench: Bench, columns: Int = 80, rows: Int = 24) throws -> TmuxTerminal {
    let terminal = try terminal(bench, columns: columns, rows: rows)
    try terminal.enter(#""$SETTLE" control"#)
    try terminal.waitForRow("brightness", " 100")
    return terminal
  }

  @Test func `get on a terminal shows units, names and colors`() throws {
    let bench = try bench()
    let client = try bench.client()
    _ = try client.ask(#"{"key":"boiler/target","set":21}"#)
    _ = try client.ask(#"{"key":"desk-lamp/color","set":{"h":30,"s":100}}"#)
    let terminal = try terminal(bench, columns: 120)
    try terminal.enter(#""$SETTLE" get"#)
    try terminal.waitForRow("KEY", "TARGET", "ACTUAL", "PHASE", "AGE", "NAME")
    try terminal.waitForRow("boiler/target", "21 °C", "Boiler")
    try terminal.waitForRow("desk-lamp/color", "#ff8000", "Desk lamp")
    try terminal.waitForRow("desk-lamp/brightness", "100", "Desk lamp")
  }

  @Test func `the title and a held value tell that the broker is away`() throws {
    let bench = try bench()
    let terminal = try started(bench)
    try terminal.waitForRow("● connected")
    bench.broker.stop(signal: SIGKILL)
    try terminal.waitForRow("○ gateway without broker")
    try terminal.press("Space")
    try terminal.waitForRow("power", "· broker offline")
    try terminal.press("i")
    try terminal.waitForRow("waits for the broker")
    try terminal.press("Escape")
    try bench.broker.start()
    try terminal.waitForRow("● connected")
  }

  @Test func `steps move at once, settle, and are sent as one command that is confirmed`() throws {
    let bench = try bench()
    let witness = try bench.witness()
    let terminal = try started(bench)

    try terminal.press("Down", "Right", "Right", "+")
    let settling = try terminal.waitForRow("▌ brightness", " 103 ", " 100 ", "█")
    #expect(settling.hasSuffix(" 3"))
    #expect(witness.texts(on: command) == [])
    try terminal.waitForRow("brightness", "✓ sent", "3 → 1")
    #expect(witness.texts(on: command) == [#"{"brightness":103}"#])
    witness.publish(state, #"{"state":"ON","brightness":103}"#, retain: true)
    try terminal.waitForRow("brightness", "✓✓ confirmed", "3 → 1")

    // A hand at the device is no command, and is shown all the same.
    witness.publish(state, #"{"state":"ON","brightness":55}"#, retain: true)
    try terminal.waitForRow("brightness", " 55 ")
    #expect(witness.texts(on: command).count == 1)
  }

  @Test func `a device that does not report fails the command, and the value is restored`() throws {
    let bench = try bench()
    let terminal = try started(bench)

    try terminal.press("Down", "1", "4", "0")
    try terminal.waitForRow("desk-lamp/brightness = 140_", "0 to 254")
    try terminal.press("Enter")
    try terminal.waitForRow("brightness", " 140 ", "█")
    let failed = try terminal.waitForRow("brightness", "✗ failed")
    #expect(failed.contains(" 100 "))
    #expect(!failed.contains("140"))
  }

  @Test func `flush sends, cancel drops, and stop ends pending commands`() throws {
    let bench = try bench()
    let witness = try bench.witness()
    let terminal = try started(bench)

    try terminal.press("/", "t", "a", "r", "g", "Enter", "2", "1", ".", "5", "Enter")
    try terminal.waitFor("the countdown") { rows in
      rows.contains { row in
        row.contains("target") && row.contains("21.5 °C") && row.hasSuffix(" 1")
          && row.contains(#/\b(60|[0-5]?[0-9])s\b/#)
      }
    }
    try terminal.press("f")
    try terminal.waitForRow("flushed 1")
    try terminal.waitForRow("target", "✓ sent")
    #expect(witness.waitFor("boiler/target", "21.5"))

    try terminal.press("Left", "Left", "c")
    try terminal.waitForRow("cancelled 1")
    try terminal.waitForRow("target", "– cancelled", "2 → 0")

    try terminal.press("Right", "!")
    try terminal.waitForRow("boiler/mode off, at once")
    try terminal.waitForRow("target", "– cancelled: urgent")
    #expect(witness.waitFor("boiler/mode", "off"))
    #expect(witness.texts(on: "boiler/target") == ["21.5"])
  }

  @Test func `the picture follows the size of the terminal`() throws {
    let bench = try bench()
    let terminal = try started(bench)

    try terminal.resize(columns: 40, rows: 10)
    let small = try terminal.waitFor("forty columns") { rows in
      rows.count == 10 && rows[9].hasSuffix("? help  q quit") && rows[0].hasSuffix("● connected")
    }
    #expect(small[1] == " PROPERTY    TARGET    STATE")
    #expect(small[2] == " Desk lamp")
    #expect(small[4] == "  brightness    100")

    try terminal.resize(columns: 120, rows: 30)
    let large = try terminal.waitFor("the wide one") { rows in
      rows.count == 30 && rows[29].hasSuffix("? help  q quit")
    }
    #expect(large.contains { $0.contains("brightness") && $0.contains("────●────") })
    #expect(large[1].contains("CHANGES"))
  }

  @Test func `a gateway that is killed and started again is found again`() throws {
    let bench = try bench()
    let witness = try bench.witness()
    let terminal = try started(bench)

    try bench.running().signal(SIGKILL)
    try terminal.waitForRow("○ no gateway, trying again")
    try terminal.press("Down", "Right")
    try terminal.waitForRow("no gateway: nothing was changed")
    try terminal.waitForRow("brightness", " 100")

    try bench.startGateway()
    try terminal.waitForRow("● connected")
    try terminal.waitForRow("brightness", " 100")
    try terminal.press("Right")
    try terminal.waitForRow("brightness", " 101 ", "✓ sent")
    #expect(witness.texts(on: command) == [#"{"brightness":101}"#])
  }

  @Test func `a hanging gateway is shown, and so is its recovery`() throws {
    let bench = try bench()
    let terminal = try started(bench)

    try bench.running().signal(SIGSTOP)
    try terminal.waitForRow("○ gateway does not answer")
    try bench.running().signal(SIGCONT)
    try terminal.waitForRow("● connected")
  }

  // MARK: - The terminal afterwards

  private static let endings = ["q", "C-c", "killed gateway", "TERM", "HUP", "QUIT"]

  @Test(arguments: endings)
  func `the terminal is as it was before, however it ends`(ending: String) throws {
    let bench = try bench()
    let terminal = try terminal(bench)
    let before = "\(bench.folder)/before"
    let after = "\(bench.folder)/after"
    let number = "\(bench.folder)/number"
    try terminal.enter("stty -a >\(before)")
    try terminal.enter(#"sh -c 'echo $$ >\#(number); exec "$SETTLE" control'; echo "ended $?""#)
    try terminal.waitForRow("brightness", " 100")
    #expect(try terminal.variable("alternate_on") == "1")
    #expect(try terminal.variable("cursor_flag") == "0")

    switch ending {
    case "killed gateway":
      try bench.running().signal(SIGKILL)
      try terminal.waitForRow("no gateway")
      try terminal.press("q")
    case "q", "C-c": try terminal.press(ending)
    default:
      let process = TextFile.read(number)?.split(separator: "\n").first.flatMap { Int32($0) }
      let signal = ["TERM": SIGTERM, "HUP": SIGHUP, "QUIT": SIGQUIT][ending]
      #expect(kill(try #require(process), try #require(signal)) == 0)
    }
    try terminal.waitForRow("ended 0")
    #expect(try terminal.variable("alternate_on") == "0")
    #expect(try terminal.variable("cursor_flag") == "1")
    try terminal.enter(#"stty -a >\#(after); echo "told $?""#)
    try terminal.waitForRow("told 0")
    #expect(TextFile.read(before) == TextFile.read(after))
    #expect(TextFile.read(after)?.contains("-icanon") == false)
  }

  @Test func `it stops with Ctrl-Z and continues with fg`() throws {
    let bench = try bench()
    let terminal = try started(bench)

    try terminal.press("Down", "C-z")
    try terminal.waitForPrompt()
    #expect(try terminal.variable("alternate_on") == "0")
    try terminal.resize(columns: 100, rows: 20)
    try terminal.enter("fg")
    try terminal.waitFor("the picture") { rows in
      rows.count == 20 && rows[19].hasSuffix("q quit")
        && rows.contains { $0.hasPrefix(" ▌ bright") }
    }
    try terminal.press("Right")
    try terminal.waitForRow("brightness", " 101 ", "✓ sent")
    try terminal.press("q")
    try terminal.waitForPrompt()
  }

  private static let refusals: [(String, String)] = [
    (#"TERM=dumb "$SETTLE" control"#, #"and TERM is "dumb""#),
    (#"TERM= "$SETTLE" control"#, "and TERM is not set"),
    (#"TERM=nonsense "$SETTLE" control"#, #"and TERM is "nonsense""#),
    (#""$SETTLE" control </dev/null"#, "needs a terminal on standard input"),
    (#""$SETTLE" control --socket /nowhere"#, "no gateway answers at /nowhere"),
  ]

  @Test(arguments: refusals)
  func `an unusable terminal is reported`(line: String, message: String) throws {
    let bench = try bench()
    let terminal = try terminal(bench, columns: 200)
    try terminal.enter(line + #"; echo "ended $?""#)
    try terminal.waitForRow("settle: ", message)
    try terminal.waitForRow("ended 69")
    #expect(try terminal.variable("alternate_on") == "0")
  }

  @Test func `NO_COLOR and a plain locale are respected`() throws {
    let bench = try bench()
    let terminal = try terminal(
      bench,
      environment: ["NO_COLOR": "1", "LANG": "C", "LC_ALL": "C"]
    )
    try terminal.enter(#""$SETTLE" control"#)
    try terminal.waitForRow("> power", " on")
    let texts = try terminal.screen()
    #expect(texts.allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } })
    let escapes = try terminal.escapes()
    #expect(!(31...37).contains { escapes.contains("\u{1B}[\($0)m") })
  }
}
