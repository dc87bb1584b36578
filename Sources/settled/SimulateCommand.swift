// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Glibc
import LastOut
import Simulation

/// `settle simulate`: plays timed changes through the queue on a virtual clock.
struct SimulateCommand: DaemonCommand {
  static let name = "simulate"
  static let summary = "Show what would be sent for timed changes, without a broker."
  static let discussion = """
    Reads one change per line, such as {"key":"desk-lamp/brightness","set":40,"at":120}. "at" is \
    in milliseconds; a line without it has the time of the line before. Prints one line per value \
    that would be sent: {"at":420,"key":"desk-lamp/brightness","value":40,"collapsed":0}.

    Without --devices any key and any JSON value is accepted, and --delay, --max-wait, --leading \
    and --min-interval apply to all keys. The gateway's own policy for numbers is --delay 300ms \
    --max-wait 2s. With --devices the keys, types and policies of those devices apply.

    A line that cannot be used is reported on standard error and skipped; the exit code is then \
    65.
    """
  static let examples = [
    Example("settle simulate changes.ndjson", "Use a quiet period of 300 ms for every key."),
    Example(
      "settle simulate --delay 200ms --max-wait 1s --leading",
      "Use another policy, and read standard input."
    ),
    Example(
      "settle simulate --devices devices changes.ndjson",
      "Use the policies of device files."
    ),
    Example("settle simulate --plot changes.ndjson", "Draw changes and commands."),
  ]
  static let parameters: [Parameter<Self>] = [
    .argument(
      "file",
      { $0.file = $1 },
      isOptional: true,
      completion: .files,
      help: "The changes; default, or -: standard input."
    ),
    .option("delay", { $0.delay = $1 }, value: "D", help: "The quiet period (default: 300ms)."),
    .option(
      "max-wait",
      { $0.maxWait = $1 },
      value: "D|none",
      completion: .words(["none"]),
      help: "The longest time between runs while changes keep coming (default: none; the gateway's"
        + " for numbers: 2s)."
    ),
    .flag("leading", { $0.leading = true }, help: "Send the first change of a burst at once."),
    .option(
      "min-interval",
      { $0.minInterval = $1 },
      value: "D",
      help: "The shortest time between two values of a key, across bursts (default: 0)."
    ),
    .option(
      "devices",
      { $0.devices = $1 },
      value: "DIR",
      completion: .directories,
      help: "Use the devices in this folder, with their types and policies."
    ),
    .flag(
      "plot",
      { $0.draws = true },
      help: "Draw changes against commands, instead of one line per command."
    ),
  ]

  var file: String?
  var delay: Duration?
  var maxWait: MaxWait?
  var leading = false
  var minInterval: Duration?
  var devices: String?
  var draws = false

  func run() -> ExitCode {
    if devices != nil, delay != nil || maxWait != nil || leading || minInterval != nil {
      complain(
        "--devices sets the policies: --delay, --max-wait, --leading and --min-interval cannot be"
          + " combined with it"
      )
      return .usage
    }
    guard let input = open() else { return .noInput }
    defer { if input != STDIN_FILENO { close(input) } }
    guard let devices else {
      let policy = Policy(
        delay: delay ?? .milliseconds(300),
        maxWait: maxWait?.duration,
        leading: leading,
        minInterval: minInterval ?? .zero
      )
      return play(input, TimelineSession(policy: policy, draws: draws))
    }
    do throws(ConfigurationFailure) {
      let loaded = try ConfigurationLoader.loadDevices(in: devices)
      return play(input, TimelineSession(registry: loaded.registry, draws: draws))
    } catch {
      for problem in error.problems { complain(problem.description) }
      return .badConfiguration
    }
  }

  private func open() -> Int32? {
    guard let file, file != "-" else {
      if isatty(STDIN_FILENO) == 1 {
        complain("reading changes from the terminal, one per line; Ctrl-D ends the input")
      }
      return STDIN_FILENO
    }
    let descriptor = unsafe Glibc.open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      complain("\(file): \(unsafe String(cString: strerror(errno)))")
      return nil
    }
    return descriptor
  }

  /// Plays the whole `input`; writes all results that are known before each wait for more.
  private func play(_ input: Int32, _ session: consuming TimelineSession) -> ExitCode {
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = unsafe read(input, &buffer, buffer.count)
      if count < 0 {
        if errno == EINTR { continue }
        complain("\(file ?? "-"): \(unsafe String(cString: strerror(errno)))")
        return .noInput
      }
      guard count > 0 else { break }
      session.append(buffer.span.extracting(0..<count))
      flush(&session)
    }
    session.finish()
    flush(&session)
    if let plot = session.plot {
      let text = plot.text(
        width: StandardOutput.columns ?? 80,
        marks: TerminalLocale.isUTF8 ? .unicode : .ascii
      )
      StandardOutput.show(text)
    }
    return session.hasMistakes ? .badInput : .done
  }

  private func flush(_ session: inout TimelineSession) {
    if !session.output.isEmpty { StandardOutput.write(session.output) }
    for mistake in session.mistakes { complain("line \(mistake.line): \(mistake.message)") }
    session.removeOutput()
  }
}

/// The value of `--max-wait`: a duration or `none`.
enum MaxWait: ArgumentValue {
  case none
  case limit(Duration)

  init(argument: String) throws(ArgumentValueError) {
    if argument == "none" {
      self = .none
      return
    }
    do throws(ArgumentValueError) {
      self = .limit(try Duration(argument: argument))
    } catch {
      throw ArgumentValueError(error.message + "; \"none\" is allowed too")
    }
  }

  var duration: Duration? {
    switch self {
    case .none: nil
    case .limit(let duration): duration
    }
  }
}
