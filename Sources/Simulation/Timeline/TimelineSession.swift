// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
package import Devices
package import LastOut

/// `simulate` without its files: bytes of grammar lines in, bytes of runs and error messages out.
///
/// A line that cannot be read or does not fit is reported with its number and left out; the rest is
/// played. Take ``output`` and ``mistakes`` whenever you like; memory grows with the number of keys,
/// not with the length of the input.
package struct TimelineSession: ~Copyable {
  /// The longest line that is read, in bytes.
  package static let lineLimit = 64 * 1024

  /// A line that was left out.
  package struct Mistake: Hashable, Sendable {
    /// Counted from one.
    package var line: Int
    package var message: String
  }

  /// Lines that left and were not taken away yet.
  package private(set) var output: [UInt8] = []
  /// Mistakes that were not taken away yet.
  package private(set) var mistakes: [Mistake] = []
  /// What was played, if a drawing was asked for; runs are then drawn instead of written.
  package private(set) var plot: TimelinePlot?
  /// Whether any line was left out so far.
  package private(set) var hasMistakes = false

  private var simulator: TimelineSimulator
  private var framer = LineFramer(limit: lineLimit)
  private let syntax: KeySyntax

  /// Plays any key and any value under one policy.
  package init(policy: Policy, draws: Bool = false) {
    simulator = TimelineSimulator(policy: policy)
    syntax = .any
    plot = draws ? TimelinePlot() : nil
  }

  /// Plays the keys of `registry` under their own types and policies.
  package init(registry: Registry, draws: Bool = false) {
    simulator = TimelineSimulator(registry: registry)
    syntax = .deviceProperty
    plot = draws ? TimelinePlot() : nil
  }

  /// Plays the lines that `bytes` completes.
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

  /// Plays a last line without a line break and lets time pass until nothing is pending.
  package mutating func finish() {
    if let rest = framer.finish() { play(rest.bytes, rest.number) }
    simulator.finish()
    collectRuns()
  }

  /// Forgets output and mistakes, keeping their space.
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
    switch request.operation {
    case .set, .step, .toggle: plot?.noteChange(of: request.key, at: simulator.now)
    case .cancel, .flush, .get, .pending, .watch, .describe, .record, .reload: break
    }
  }

  private mutating func reject(_ line: Int, _ message: String) {
    hasMistakes = true
    mistakes.append(Mistake(line: line, message: message))
  }

  private mutating func collectRuns() {
    for run in simulator.runs {
      if plot == nil { run.appendLine(to: &output) } else { plot?.note(run) }
    }
    simulator.removeRuns()
  }
}
