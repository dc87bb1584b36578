// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
package import Devices
internal import JSON
package import LastOut
package import Values

/// The `simulate` command without I/O: grammar lines go in, runs and error messages come out.
///
/// A line that is invalid is reported with its number and left out. ``output`` and ``mistakes`` can
/// be read and removed at any time. Memory grows with the number of keys, not with the length of
/// the input.
package struct TimelineSession: ~Copyable {
  /// The maximum length of a line, in bytes.
  package static let lineLimit = 64 * 1024

  /// A line that is left out.
  package struct Mistake: Hashable, Sendable {
    /// Counted from one.
    package var line: Int
    package var message: String
  }

  /// The lines of runs since the last ``removeOutput()``.
  package private(set) var output: [UInt8] = []
  /// The mistakes since the last ``removeOutput()``.
  package private(set) var mistakes: [Mistake] = []
  /// The plot, if one is drawn; runs then go there instead of to ``output``.
  package private(set) var plot: TimelinePlot?
  /// The changes, if they are recorded; runs are then dropped.
  package private(set) var recording: Recording?
  /// Whether any line has been left out.
  package private(set) var hasMistakes = false

  private var simulator: TimelineSimulator
  private var framer = LineFramer(limit: lineLimit)
  private let syntax: KeySyntax

  /// Accepts any key and any value, with one policy.
  package init(policy: Policy, draws: Bool = false) {
    simulator = TimelineSimulator(policy: policy)
    syntax = .any
    plot = draws ? TimelinePlot() : nil
  }

  /// Accepts the keys of `registry`, with their types and policies.
  package init(registry: Registry, draws: Bool = false) {
    simulator = TimelineSimulator(registry: registry)
    syntax = .deviceProperty
    plot = draws ? TimelinePlot() : nil
  }

  /// Checks lines and keeps their changes, for ``KeyAdvice``; with the keys and types of
  /// `registry`, if there is one.
  package init(recordingFor registry: Registry?) {
    if let registry {
      self.init(registry: registry)
    } else {
      self.init(policy: Policy(delay: .zero))
    }
    recording = Recording(registry: registry)
  }

  /// Appends input and plays the complete lines.
  package mutating func append(_ bytes: Span<UInt8>) {
    framer.append(bytes)
    while let next = framer.next() {
      switch next {
      case .line(let line, let number): play(line, number)
      case .tooLong(let number):
        reject(number, "the line is longer than \(Self.lineLimit) bytes")
      }
    }
    collectRuns()
  }

  /// Plays a last line without a line break and advances the clock until nothing is pending.
  package mutating func finish() {
    if case .line(let line, let number) = framer.finish() { play(line, number) }
    simulator.finish()
    collectRuns()
  }

  /// Removes output and mistakes, but keeps their capacity.
  package mutating func removeOutput() {
    output.removeAll(keepingCapacity: true)
    mistakes.removeAll(keepingCapacity: true)
  }

  private mutating func play(_ line: ArraySlice<UInt8>, _ number: Int) {
    let request: ControlRequest
    do throws(GrammarError) {
      request = try ControlRequest(line: line.span, keys: syntax)
    } catch {
      return reject(number, error.message)
    }
    do throws(TimelineError) {
      try simulator.apply(request)
    } catch {
      return reject(number, error.description)
    }
    let keys = simulator.changedKeys(of: request)
    recording?.record(request, of: keys, at: simulator.now)
    switch request.operation {
    case .set, .step, .toggle:
      for key in keys { plot?.recordChange(of: key, at: simulator.now) }
    case .scene, .cancel, .flush, .get, .pending, .watch, .describe, .record, .reload, .status,
      .log, .devices:
      break
    }
  }

  private mutating func reject(_ line: Int, _ message: String) {
    hasMistakes = true
    mistakes.append(Mistake(line: line, message: message))
  }

  private mutating func collectRuns() {
    for run in simulator.runs where recording == nil {
      if plot == nil { run.appendLine(to: &output) } else { plot?.record(run) }
    }
    simulator.removeRuns()
  }
}

/// Why a line of a timeline is left out.
package enum TimelineError: Error, Hashable, Sendable {
  /// `at` is less than that of the line before; both in milliseconds.
  case timeRunsBackwards(found: Double, after: Double)
  /// `at` is negative or too large, in milliseconds.
  case timeOutOfRange(Double)
  /// A `step` or `toggle` of a key that has neither a pending nor a sent value.
  case noBase(key: String)
  /// A `step` or `toggle` of a value that does not support it.
  case wrongBase(key: String, operation: String, expected: String, found: String)
  /// A request that does not apply to a virtual clock.
  case notPlayable(String)
  /// The change is not valid for its device.
  case refused(ValidationError)

  /// One sentence that is safe for a terminal.
  package var description: String {
    switch self {
    case .timeRunsBackwards(let found, let after):
      "\"at\" is \(Self.text(found)) after \(Self.text(after)): it must not decrease"
    case .timeOutOfRange(let found):
      "\"at\" is \(Self.text(found)): milliseconds from 0 to 1000000000000 are allowed"
    case .noBase(let key):
      "\(key) has no value to count from: \"set\" it first"
    case .wrongBase(let key, let operation, let expected, let found):
      "\"\(operation)\" needs \(expected); \(key) is at \(found)"
    case .notPlayable(let operation):
      "\"\(operation)\" means nothing on a virtual clock: set, step, toggle, flush and cancel are"
        + " allowed"
    case .refused(let error): error.description
    }
  }

  private static func text(_ number: Double) -> String { JSONWriter.text(.number(number)) }
}
