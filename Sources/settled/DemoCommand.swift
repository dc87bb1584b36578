// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Glibc
import Operations
import Simulation

/// `settle demo`: the gateway at work, with a private broker and simulated devices.
struct DemoCommand: DaemonCommand {
  static let name = "demo"
  static let summary = "Try everything with simulated devices and a private broker."
  static let discussion = """
    Starts a private mosquitto on a free loopback port, four simulated devices, the gateway and \
    its panel, and plays scripted gestures that change values quickly. The gestures are generated \
    from stated speeds and pauses. At the end a table shows changes in, commands out, and whether \
    every device reports its last target; the exit code is 0 if all do. --with uses devices of one \
    convention instead: \(ConventionName.allCases.map(\.rawValue).joined(separator: ", ")).
    """
  static let examples = [
    Example("settle demo", "About 13 seconds."),
    Example("settle demo --keep", "Keep everything running afterwards."),
    Example("settle demo --with shelly-gen2", "Devices of one convention; about 5 seconds."),
    Example(
      "settle demo --script changes.ndjson",
      "Play your own changes, in the format of simulate."
    ),
  ]
  static let parameters: [Parameter<Self>] = [
    .option(
      "with",
      { $0.convention = $1 },
      value: "CONVENTION",
      completion: .words(ConventionName.allCases.map(\.rawValue)),
      help: "Use devices of this convention."
    ),
    .option(
      "script",
      { $0.script = $1 },
      value: "FILE",
      completion: .files,
      help: "Play these changes, one per line with \"at\" in milliseconds; - is standard input."
    ),
    .option(
      "speed",
      { $0.speed = $1 },
      value: "X",
      help: "Play X times as fast; policies stay (default: 1)."
    ),
    .flag(
      "keep",
      { $0.keeps = true },
      help: "Keep running after the script, and print commands to try."
    ),
    .flag("verbose", short: "v", { $0.isVerbose = true }, help: "Show the gateway's log."),
  ]

  var convention: ConventionName?
  var script: String?
  var speed = 1.0
  var keeps = false
  var isVerbose = false

  func run() -> ExitCode {
    guard speed >= 0.01, speed <= 1000 else {
      complain("--speed must be from 0.01 to 1000")
      return .usage
    }
    var options = DemoStage.Options()
    options.convention = convention
    options.speed = speed
    options.keeps = keeps
    options.logLevel = isVerbose ? .debug : .warning
    if let script {
      guard let text = InputFile.read(script) else {
        complain("\(script): \(unsafe String(cString: strerror(errno)))")
        return .noInput
      }
      options.script = text
    }
    do throws(DemoError) {
      return ExitCode(rawValue: try DemoStage(options, screen: Self.screen()).run()) ?? .failed
    } catch {
      complain(error.description)
      return error.isBadInput ? .badInput : .unavailable
    }
  }

  private static func screen() -> DemoScreen {
    let environment = Environment.all
    let isTerminal = isatty(STDOUT_FILENO) == 1 && environment["TERM"] != "dumb"
    return DemoScreen(
      isInteractive: isTerminal,
      hasColor: isTerminal && environment["NO_COLOR", default: ""].isEmpty,
      width: StandardOutput.columns ?? 100,
      write: { StandardOutput.write(Array($0.utf8)) }
    )
  }
}

extension ConventionName: ArgumentValue {}
