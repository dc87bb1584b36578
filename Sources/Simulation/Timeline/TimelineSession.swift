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

  /// Plays one line after the other.
  private struct Player: ~Copyable, LineSink {
    var simulator: TimelineSimulator
    let syntax: KeySyntax
    var mistakes: [Mistake] = []

    mutating func take(_ line: borrowing LineSplitter.Line, number: Int) {
      switch line {
      case .tooLong:
        reject(number, "the line is longer than \(TimelineSession.lineLimit) bytes")
      case .text(let bytes):
        do throws(GrammarError) {
          play(try ControlRequest(line: bytes, keys: syntax), number)
        } catch {
          reject(number, error.message)
        }
      }
    }

    private mutating func play(_ request: ControlRequest, _ number: Int) {
      do throws(TimelineError) {
        try simulator.apply(request)
      } catch {
        reject(number, error.description)
      }
    }

    private mutating func reject(_ line: Int, _ message: String) {
      mistakes.append(Mistake(line: line, message: message))
    }
  }

  /// Lines that left and were not taken away yet.
  package private(set) var output: [UInt8] = []
  /// Whether any line was left out so far.
  package private(set) var hasMistakes = false

  private var player: Player
  private var splitter = LineSplitter(limit: lineLimit)

  /// Plays any key and any value under one policy.
  package init(policy: Policy) {
    player = Player(simulator: TimelineSimulator(policy: policy), syntax: .any)
  }

  /// Plays the keys of `registry` under their own types and policies.
  package init(registry: Registry) {
    player = Player(simulator: TimelineSimulator(registry: registry), syntax: .deviceProperty)
  }

  /// Mistakes that were not taken away yet.
  package var mistakes: [Mistake] { player.mistakes }

  /// Plays the lines that `bytes` completes.
  package mutating func append(_ bytes: Span<UInt8>) {
    splitter.append(bytes, to: &player)
    collectRuns()
  }

  /// Plays the last line and lets time pass until nothing is pending.
  package mutating func finish() {
    splitter.finish(to: &player)
    player.simulator.finish()
    collectRuns()
  }

  /// Forgets output and mistakes, keeping their space.
  package mutating func removeOutput() {
    output.removeAll(keepingCapacity: true)
    player.mistakes.removeAll(keepingCapacity: true)
  }

  private mutating func collectRuns() {
    if !player.mistakes.isEmpty { hasMistakes = true }
    for run in player.simulator.runs { run.appendLine(to: &output) }
    player.simulator.removeRuns()
  }
}
