// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Testing

struct CommandParserTests {
  enum Phase: String, CaseIterable, ArgumentValue { case sent, confirmed }

  struct Send: Command, Equatable {
    static let name = "send"
    static let summary = "Send one value to a device and wait for what becomes of it."
    static let discussion = """
      The value leaves when the key has been quiet for its delay.

      A second paragraph, long enough that it has to be wrapped somewhere before the end of it.
      """
    static let examples = [Example("tool send lamp -5", "A negative number is a value.")]
    static let parameters: [Parameter<Self>] = [
      .argument("key", { $0.key = $1 }, help: "The key."),
      .argument("amount", { $0.amount = $1 }, isOptional: true, help: "How much."),
      .option(
        "wait",
        { $0.wait = $1 },
        value: "sent|confirmed",
        alone: "confirmed",
        help: "Wait for it."
      ),
      .option(
        "timeout",
        short: "t",
        { $0.timeout = $1 },
        value: "D",
        help: "Give up after D, such as 2s."
      ),
      .option("count", { $0.count = $1 }, value: "N", help: "How often."),
      .option(
        "really-long-name-of-option",
        { $0.long = $1 },
        value: "TEXT",
        help: "Something that needs more than one line of help because it is long."
      ),
      .flag("json", short: "j", { $0.json = true }, help: "Print JSON."),
      .flag("now", short: "n", { $0.now = true }, help: "At once."),
    ]
    var key = ""
    var amount: Double?
    var wait: Phase?
    var timeout: Duration?
    var count = 1
    var long = ""
    var json = false
    var now = false
  }

  private static func send(_ change: (inout Send) -> Void) -> Send {
    var send = Send()
    send.key = "k"
    change(&send)
    return send
  }

  @Test(arguments: [
    (["k"], send { _ in }),
    (["k", "-5"], send { $0.amount = -5 }),
    (["k", "+10"], send { $0.amount = 10 }),
    (["k", "-.5"], send { $0.amount = -0.5 }),
    (
      ["--json", "k", "2"],
      send {
        $0.json = true; $0.amount = 2
      }
    ),
    (["k", "--wait"], send { $0.wait = .confirmed }),
    (
      ["k", "--wait", "5"],
      send {
        $0.wait = .confirmed; $0.amount = 5
      }
    ),
    (["k", "--wait=sent"], send { $0.wait = .sent }),
    (["k", "--timeout", "2s"], send { $0.timeout = .seconds(2) }),
    (["k", "--timeout=300ms"], send { $0.timeout = .milliseconds(300) }),
    (["k", "-t", "0"], send { $0.timeout = .zero }),
    (["k", "-t5m"], send { $0.timeout = .seconds(300) }),
    (
      ["k", "-jn"],
      send {
        $0.json = true; $0.now = true
      }
    ),
    (
      ["k", "-jt", "1h"],
      send {
        $0.json = true; $0.timeout = .seconds(3600)
      }
    ),
    (["k", "--count", "-3"], send { $0.count = -3 }),
    (["k", "--really-long-name-of-option="], send { _ in }),
    (["k", "--really-long-name-of-option=a=b"], send { $0.long = "a=b" }),
    (["--", "--json"], send { $0.key = "--json" }),
    (["-"], send { $0.key = "-" }),
    (["k", "--count=1", "--count=2"], send { $0.count = 2 }),
  ])
  func `arguments fill the command`(arguments: [String], command: Send) throws {
    #expect(try Send(arguments: arguments, calledAs: "tool send") == command)
  }

  @Test(arguments: [
    ([], "KEY is missing"),
    (["k", "1", "2"], #"unexpected argument "2""#),
    (["k", "x"], #"AMOUNT must be a number, found "x""#),
    (["k", "21,5"], #"AMOUNT must be a number, found "21,5"; did you mean "21.5"?"#),
    (["k", "nan"], #"AMOUNT must be a number, found "nan""#),
    (["k", "0x10"], #"AMOUNT must be a number, found "0x10""#),
    (["k", "1e999"], #"AMOUNT must be a number, found "1e999""#),
    (["k", "--wiat"], #"unknown option "--wiat"; did you mean "--wait"?"#),
    (["k", "--brightness"], #"unknown option "--brightness""#),
    (["k", "-x"], #"unknown option "-x""#),
    (["k", "--wait=later"], #"--wait must be sent or confirmed, found "later""#),
    (
      ["k", "--wait=confirm"],
      #"--wait must be sent or confirmed, found "confirm"; did you mean "confirmed"?"#
    ),
    (["k", "--timeout"], "--timeout needs a value: --timeout D"),
    (["k", "--timeout", "--json"], "--timeout needs a value: --timeout D"),
    (["k", "--timeout", "5"], #"--timeout needs a unit, found "5"; did you mean "5s" or "5ms"?"#),
    (
      ["k", "--timeout=soon"],
      #"--timeout must be a duration such as 300ms, 2s, 5m or 1h, found "soon""#
    ),
    (["k", "--count=1.5"], #"--count must be a whole number, found "1.5""#),
    (["k", "--json=true"], "--json has no value"),
    (["k", "a\u{1B}[31m"], #"AMOUNT must be a number, found "a\u{1b}[31m""#),
  ])
  func `a mistake is named`(arguments: [String], message: String) {
    #expect(throws: UsageError(path: "tool send", message: message)) {
      try Send(arguments: arguments, calledAs: "tool send")
    }
  }

  private static let program = Program(
    name: "tool",
    version: "1.2.3",
    summary: "A tool.",
    commands: [
      CommandEntry(Send.self) { $0.key == "k" ? .done : .failed },
      CommandEntry(passing: "run", summary: "Run it.", section: "GATEWAY") {
        $0 == ["--help", "-x", "--"] ? .usage : $0 == ["--help"] ? .badInput : .failed
      },
    ]
  )

  /// The output of the command line: its result, help or mistake.
  private func outcome(_ arguments: [String]) -> String {
    do throws(UsageError) {
      return switch try Self.program.parse(arguments) {
      case .help(let text): text
      case .version: "version"
      case .run(let run): "exit \(run().rawValue)"
      }
    } catch {
      return error.description
    }
  }

  @Test(arguments: [
    (["send", "k"], "exit 0"),
    (["run", "--help", "-x", "--"], "exit 64"),
    (["--version"], "version"),
    (["send", "--version"], "version"),
    ([], "tool: a command is missing\nSee \"tool --help\"."),
    (["sned"], "tool: unknown command \"sned\"; did you mean \"send\"?\nSee \"tool --help\"."),
    (["pipe"], "tool: unknown command \"pipe\"; there are send, run\nSee \"tool --help\"."),
    (
      ["--json", "send"],
      "tool: unknown option \"--json\"; options follow the command\nSee \"tool --help\"."
    ),
    (["send"], "tool send: KEY is missing\nSee \"tool send --help\"."),
    (["help", "run"], "exit 65"),
  ])
  func `a program finds its command`(arguments: [String], outcome expected: String) {
    #expect(outcome(arguments) == expected)
  }

  @Test(arguments: [["send", "--help"], ["send", "k", "--json", "-h"], ["help", "send"]])
  func `help teaches a command`(arguments: [String]) {
    #expect(
      outcome(arguments) == """
        OVERVIEW: Send one value to a device and wait for what becomes of it.

        The value leaves when the key has been quiet for its delay.

        A second paragraph, long enough that it has to be wrapped somewhere before the
        end of it.

        USAGE: tool send [--wait[=sent|confirmed]] [--timeout D] [--count N]
                         [--really-long-name-of-option TEXT] [--json] [--now] KEY
                         [AMOUNT]

        ARGUMENTS:
          KEY     The key.
          AMOUNT  How much.

        OPTIONS:
          --wait[=sent|confirmed]
                                  Wait for it.
          -t, --timeout D         Give up after D, such as 2s.
          --count N               How often.
          --really-long-name-of-option TEXT
                                  Something that needs more than one line of help
                                  because it is long.
          -j, --json              Print JSON.
          -n, --now               At once.
          -h, --help              Show this help.

        EXAMPLES:
          tool send lamp -5
              A negative number is a value.

        """
    )
  }

  @Test(arguments: [["--help"], ["-h"], ["help"]])
  func `help lists the commands under their headings`(arguments: [String]) {
    #expect(
      outcome(arguments) == """
        OVERVIEW: A tool.

        USAGE: tool COMMAND [ARGUMENTS]

        COMMANDS:
          send  Send one value to a device and wait for what becomes of it.

        GATEWAY:
          run  Run it.

        OPTIONS:
          -h, --help  Show this, or a command's help.
          --version   Show the version.

        """
    )
  }
}
