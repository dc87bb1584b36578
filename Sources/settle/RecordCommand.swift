// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Values
import Glibc
import JSON

struct RecordCommand: PatternCommand {
  static let name = "record"
  static let summary = "Record incoming changes as input for simulate."
  static let discussion = """
    Writes one line for each change that the gateway accepts, from any client: \
    {"at":1500,"key":"desk-lamp/brightness","set":40,"source":"cli"}. "at" is in milliseconds \
    since the start of the recording. Each line is written when its change arrives. Ctrl-C, \
    SIGTERM or --for ends the recording. "settle simulate --devices devices < morning.ndjson" \
    shows what the same changes would send under other policies.

    Steps and toggles are recorded as the values they lead to, because simulate does not know the \
    devices' states. Refused changes are not recorded.
    """
  static let examples = [
    Example("settle record > morning.ndjson", "Everything, until Ctrl-C."),
    Example("settle record 'boiler/*' --for 10m > boiler.ndjson", "One device, for ten minutes."),
  ]
  static let parameters: [Parameter<Self>] =
    [.option("for", { $0.duration = $1 }, value: "D", help: "End after D, such as 30s.")]
    + patternParameters(isOptional: true)

  /// How many more reads follow the end, so that a flood ends too.
  private static let lastRounds = 64

  var pattern = "*"
  var duration: Duration?
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let signals = SignalInbox([SIGINT, SIGTERM])
    var client = try connection.connect()
    try client.send(ControlRequest(.record, key: pattern))
    let deadline = duration.map { Deadline(after: $0) }
    var notes = RecordingNotes()
    var rest = Self.lastRounds
    do throws(ClientError) {
      while true {
        notes.show()
        // Changes that arrived before the end belong to the recording.
        let isOver = Self.wait(client.descriptor, signals, deadline, notes.patience)
        for reply in try client.available() {
          guard case .recorded(let change, _) = reply else {
            notes.clear()
            return .unexpected(reply)
          }
          StandardOutput.print(bytes: JSONWriter.bytes(change.timed))
          notes.count += 1
        }
        if isOver { rest -= 1 }
        if rest == 0 || (isOver && !Self.isReadable(client.descriptor)) { break }
      }
    } catch {
      notes.clear()
      Terminal.complain("\(error); \(notes.summary)")
      return .unavailable
    }
    notes.clear()
    if notes.isPerson { Terminal.complain(notes.summary) }
    return .done
  }

  /// Waits for changes; `true` when the recording must end.
  private static func wait(
    _ socket: Int32,
    _ signals: borrowing SignalInbox,
    _ deadline: Deadline?,
    _ patience: Int32?
  ) -> Bool {
    let left = deadline?.remainingMilliseconds
    var entries = [
      pollfd(fd: socket, events: Int16(POLLIN), revents: 0),
      pollfd(fd: signals.descriptor, events: Int16(POLLIN), revents: 0),
    ]
    unsafe poll(&entries, nfds_t(entries.count), [left, patience].compactMap { $0 }.min() ?? -1)
    return entries[1].revents != 0 || deadline?.remainingMilliseconds == 0
  }

  private static func isReadable(_ socket: Int32) -> Bool {
    var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&entry, 1, 0) > 0
  }
}

/// The progress line of a recording on a terminal.
private struct RecordingNotes {
  private static let clear = "\r\u{1B}[K"
  /// How often the line is rewritten, in milliseconds.
  private static let period: Int32 = 200

  /// Changes so far.
  var count = 0
  /// Whether standard error is a terminal.
  let isPerson = isatty(STDERR_FILENO) == 1
  /// Whether the changes themselves go elsewhere than to the terminal.
  private let isAlone = isatty(STDERR_FILENO) == 1 && !Terminal.isInteractive
  private var shown = -1
  private var next = Deadline(after: .zero)

  /// How long to wait before the next rewrite; `nil` while the line is up to date.
  var patience: Int32? { isAlone && shown != count ? next.remainingMilliseconds : nil }

  var summary: String { "\(CountText.text(count, "change")) recorded" }

  mutating func show() {
    guard isAlone, shown != count, next.remainingMilliseconds == 0 else { return }
    StandardError.show("\(Self.clear)\(summary); Ctrl-C ends the recording")
    shown = count
    next = Deadline(after: .milliseconds(Int(Self.period)))
  }

  /// Erases the line.
  mutating func clear() {
    if shown >= 0 { StandardError.show(Self.clear) }
    shown = -1
  }
}
