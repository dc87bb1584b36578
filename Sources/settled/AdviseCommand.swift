// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Control
import Devices
import Glibc
import JSON
import LastOut
import Operations
import Simulation
import Values

/// `settle advise`: tries policies on recorded changes.
struct AdviseCommand: DaemonCommand {
  static let name = "advise"
  static let summary = "Try policies on recorded gestures, and suggest one for each key."
  static let discussion = """
    Reads a recording of "settle record", and plays it under many policies on a virtual clock. For \
    each key and policy it shows how many commands are sent; how long after the last change of a \
    gesture the final value is sent, for the gesture in the middle and the worst; and the longest \
    time that any change waits until its value, or a newer one, is sent. A policy is marked with * \
    if no other is better in one of these and as good in the rest. The suggestion, marked with >, \
    is the one with the fewest commands within --within and --at-most, with the lines to paste \
    into a device file. A picture shows the gesture with the most changes.

    With --devices or --config the policies in force are tried too, and mistakes in the recording \
    are found by the types of its keys. --config also applies the lanes of the settings, and \
    --lane one lane for all keys; a column then shows how many commands waited in the lane at \
    once. A line that cannot be used is reported with its number, and the exit code is 65.
    """
  static let examples = [
    Example("settle advise changes.ndjson", "Try policies on each key of a recording."),
    Example(
      "settle advise --config settle.yaml --key 'desk-lamp/*' changes.ndjson",
      "Compare with the policies in force, in the lanes of the settings."
    ),
    Example(
      "settle advise --lane rate=2/s,burst=3 --json < changes.ndjson",
      "Read standard input, and see what a slow lane would queue, one object per policy."
    ),
  ]
  static let parameters: [Parameter<Self>] = [
    .argument(
      "file",
      { $0.file = $1 },
      isOptional: true,
      completion: .files,
      help: "The recording; default, or -: standard input."
    ),
    .option("key", { $0.key = $1 }, value: "PATTERN", help: "Only these keys of the recording."),
    .option(
      "within",
      { $0.within = $1 },
      value: "D",
      help: "Suggest a policy whose final value is sent this soon (default: 500ms)."
    ),
    .option(
      "at-most",
      { $0.atMost = $1 },
      value: "D",
      help: "Suggest a policy where no change waits longer (default: 2s)."
    ),
    .option(
      "pause",
      { $0.pause = $1 },
      value: "D",
      help: "A pause this long between changes ends a gesture (default: 1s)."
    ),
    .option(
      "config",
      { $0.config = $1 },
      value: "F",
      completion: .files,
      help: "Use the devices and the lanes of this settings file."
    ),
    .option(
      "devices",
      { $0.devices = $1 },
      value: "DIR",
      completion: .directories,
      help: "Use the devices in this folder, with their types and policies."
    ),
    .option(
      "lane",
      { $0.lane = $1 },
      value: "LIMITS",
      help: "Let all keys share a lane, such as rate=10/s,burst=5 or window=auto."
    ),
    .option(
      "round-trip",
      { $0.roundTrip = $1 },
      value: "D",
      help: "How long devices take to confirm, for a lane with a window (default: 200ms)."
    ),
    .flag("json", { $0.json = true }, help: "Print JSON, one object per key and policy."),
  ]

  /// How many mistakes of a recording are shown.
  private static let shownMistakes = 10

  var file: String?
  var key: String?
  var within: Duration?
  var atMost: Duration?
  var pause: Duration?
  var config: String?
  var devices: String?
  var lane: LaneArgument?
  var roundTrip: Duration?
  var json = false

  func run() -> ExitCode {
    if file == nil, isatty(STDIN_FILENO) == 1 {
      complain("name a recording, such as one of \"settle record > changes.ndjson\"")
      return .usage
    }
    var loaded: LoadedConfiguration?
    do throws(ConfigurationFailure) {
      loaded = try load()
    } catch {
      for problem in error.problems { complain(problem.description) }
      return .badConfiguration
    }
    guard let bytes = InputFile.read(file ?? "-") else {
      complain("\(file ?? "-"): \(unsafe String(cString: strerror(errno)))")
      return .noInput
    }
    var session = TimelineSession(recordingFor: loaded?.registry)
    session.append(bytes.span)
    session.finish()
    guard !session.hasMistakes, let recording = session.recording else {
      report(session.mistakes)
      return .badInput
    }
    return advise(on: recording, lanes(loaded?.gateway.lanes ?? [:]))
  }

  /// The devices, if any are named; lanes only with settings.
  private func load() throws(ConfigurationFailure) -> LoadedConfiguration? {
    guard let config else { return try devices.map(ConfigurationLoader.loadDevices) }
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = config
    overrides.devices = devices
    return try ConfigurationLoader.load(overrides, environment: Environment.all)
  }

  private func lanes(_ limits: [String: LaneLimits]) -> TrialLanes {
    var lanes = TrialLanes()
    lanes.limits = limits
    if let lane {
      lanes.limits = ["lane": lane.limits]
      lanes.shared = "lane"
    }
    lanes.roundTrip = roundTrip ?? lanes.roundTrip
    return lanes
  }

  private func report(_ mistakes: [TimelineSession.Mistake]) {
    for mistake in mistakes.prefix(Self.shownMistakes) {
      complain("line \(mistake.line): \(mistake.message)")
    }
    let rest = mistakes.count - Self.shownMistakes
    if rest > 0 { complain("\(CountText.text(rest, "more line")) cannot be used") }
  }

  private func advise(on recording: Recording, _ lanes: TrialLanes) -> ExitCode {
    let positions = recording.keys.indices.filter { number in
      key.map { Pattern($0).matches(recording.keys[number].name) } ?? true
    }
    guard !positions.isEmpty else {
      let names = recording.keys.prefix(5).map(\.name).joined(separator: ", ")
      complain(
        recording.keys.isEmpty
          ? "the recording has no changes"
          : "the recording has no key '\(Excerpt.of(key ?? ""))'; it has \(names)"
            + (recording.keys.count > 5 ? ", …" : "")
      )
      return .badInput
    }
    let gestures = Gestures(of: recording, pause: pause ?? .seconds(1))
    var wish = KeyAdvice.Wish()
    wish.final = within ?? wish.final
    wish.wait = atMost ?? wish.wait
    for (number, position) in positions.enumerated() {
      let advice = KeyAdvice(on: position, of: recording, gestures, lanes, wish)
      if json {
        for object in advice.json { StandardOutput.print(JSONWriter.text(object)) }
        continue
      }
      if number > 0 { StandardOutput.print("") }
      let text = AdviceText(
        advice,
        width: StandardOutput.columns ?? 80,
        marks: TerminalLocale.isUTF8 ? .unicode : .ascii
      )
      StandardOutput.show(text.text)
    }
    return .done
  }
}
