// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations
import TestBroker
import Testing

/// Help and suggestions for new users.
@Suite(.blocking) struct HelpScenarios {
  @Test(arguments: ["settle", "settled"])
  func `help on every level has two examples, each with its meaning`(program: String) throws {
    let commands = try ProgramHelp.commands(of: program)
    #expect(commands.count >= 5)
    for call in [["--help"]] + commands.map({ [$0, "--help"] }) {
      let help = try ProgramHelp(program, call)
      #expect(help.code == 0, "\(call)")
      #expect(help.examples.count >= 2, "\(call)")
      let lines = try #require(help.text.split(separator: "EXAMPLES:\n").last).split(
        separator: "\n"
      )
      let meanings = zip(lines, lines.dropFirst()).filter {
        !$0.0.hasPrefix("   ") && $0.1.hasPrefix("      ")
      }
      #expect(meanings.count == help.examples.count, "\(call)")
      let command = call.count > 1 ? " \(call[0])" : ""
      for example in help.examples {
        #expect(
          ["settle\(command)", "settled\(command)"].contains { example.contains($0) },
          "\(call)"
        )
      }
    }
  }

  @Test(arguments: ["settle", "settled"])
  func `a misspelled command or option is answered with a suggestion`(
    program: String
  ) throws {
    for command in try ProgramHelp.commands(of: program) {
      // A letter twice is the nearest miss.
      let miss = command + String(command.suffix(1))
      let answer = try ProgramHelp(program, [miss])
      #expect(answer.code == 64)
      #expect(answer.text.contains(#"unknown command "\#(miss)"; did you mean "\#(command)"?"#))
      for option in try ProgramHelp(program, [command, "--help"]).optionNames {
        let miss = option + String(option.suffix(1))
        let answer = try ProgramHelp(program, [command, miss])
        #expect(answer.code == 64)
        #expect(
          answer.text.contains(#"unknown option "\#(miss)"; did you mean "\#(option)"?"#),
          "\(command): \(answer.text)"
        )
      }
    }
  }

  private static let misses: [(line: String, code: Int32, meant: String)] = [
    ("settle set desk-lmap/brightness 40", 65, "'desk-lamp'"),
    ("settle set desk-lamp/brightnes 40", 65, "'brightness'"),
    ("settle step boiler/taget_temperature 1", 65, "'target_temperature'"),
    ("settle toggle desk-lamp/powre", 65, "'power'"),
    ("settle set boiler/mode atuo", 65, "'auto'"),
    ("settle set desk-lamp/brightness 40 --wait=confirm", 64, #""confirmed""#),
    ("settle set desk-lamp/brightness 40 --ttl 5", 64, #""5s" or "5ms""#),
    ("settle completions bsh", 64, #""bash""#),
    ("settle demo --with tasmotta", 64, #""tasmota""#),
    ("settle manual simulte", 64, #""simulate""#),
    ("settle manual rnu", 64, #""run""#),
    ("settle help simulte", 64, #""simulate""#),
  ]

  @Test func `a misspelled key, value or word is answered with a suggestion`() throws {
    let house = try ExampleHouse(withGateway: true)
    for miss in Self.misses {
      // The gateway searches for one suggestion a second: a repeated mistake gets its own later.
      var wait = Wait()
      var run: ExampleRun
      repeat {
        run = try ExampleRun(miss.line, in: house)
        #expect(run.waitForExit() == miss.code, "\(miss.line)")
        #expect(run.output.isEmpty, "\(miss.line)")
      } while !run.errors.contains("did you mean") && wait.remaining() != nil
      #expect(run.errors.contains("did you mean \(miss.meant)"), "\(miss.line): \(run.errors)")
    }
  }

  @Test(arguments: [
    "settle get", "settle set desk-lamp/brightness 41 --wait",
    "settle demo --script changes.ndjson --speed 10",
  ])
  func `NO_COLOR and a plain terminal are respected`(line: String) throws {
    let house = try ExampleHouse(withGateway: true)
    for (variables, isColored) in [
      ("TERM=xterm", true), ("TERM=xterm NO_COLOR=", true), ("TERM=xterm NO_COLOR=1", false),
      ("TERM=dumb", false),
    ] {
      let run = try ExampleRun("\(variables) script -qec '\(line)' /dev/null </dev/null", in: house)
      #expect(run.waitForExit() == 0)
      // Select graphic rendition: ESC [ numbers m.
      let parts = run.output.split(separator: "\u{1B}[").dropFirst()
      let isRendered = parts.contains { $0.drop { $0.isNumber || $0 == ";" }.first == "m" }
      #expect(isRendered == isColored, "\(variables) \(line): \(run.output)")
    }
  }

  @Test func `the page of the command line names every command, and no other`() throws {
    let commands = try ProgramHelp.commands()
    let text = try ExampleCollection.text(of: "docs/cli.md")
    let rows = text.split(separator: "\n").drop { $0 != "| command | does |" }.dropFirst(2)
      .prefix { $0.hasPrefix("|") }
    let cells = rows.map { $0.split(separator: "|")[0].split(separator: "`") }
    // Between the marks: `settle set KEY VALUE`, `step KEY ±N`.
    let named = cells.flatMap { cell in
      cell.enumerated().filter { $0.offset % 2 == 1 }.compactMap { part in
        part.element.split(separator: " ").first { $0 != "settle" }.map(String.init)
      }
    }
    #expect(Set(named) == Set(commands))
    #expect(named.count == commands.count)
  }

  @Test func `no document speaks of a command that is not there`() throws {
    let commands = try ProgramHelp.commands()
    var spoken = 0
    for name in try ExampleCollection.documents() {
      // Blocks are examples, and are run; what is left stands between single marks.
      let blocks = try ExampleCollection.text(of: name).split(
        separator: "```",
        omittingEmptySubsequences: false
      )
      for text in blocks.enumerated().filter({ $0.offset % 2 == 0 }).map(\.element) {
        let parts = text.split(separator: "`", omittingEmptySubsequences: false)
        for code in parts.enumerated().filter({ $0.offset % 2 == 1 }).map(\.element) {
          let words = code.split(separator: " ")
          guard words.count > 1, words[0] == "settle", words[1].first?.isLetter == true else {
            continue
          }
          spoken += 1
          #expect(commands.contains(String(words[1])), "\(name): \(code)")
        }
      }
    }
    #expect(spoken > 15)
  }
}
