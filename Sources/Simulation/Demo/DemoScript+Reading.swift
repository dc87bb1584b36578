// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
package import Devices

extension DemoScript {
  /// A line of a script that cannot be played.
  package struct Mistake: Error, Hashable, Sendable {
    /// Counted from one.
    package var line: Int
    package var message: String
  }

  /// Every line of a script that cannot be played.
  package struct Mistakes: Error, Hashable, Sendable, CustomStringConvertible {
    /// In order; the first ``kept`` of them.
    package private(set) var first: [Mistake] = []
    /// How many there are.
    package private(set) var count = 0
    /// How many are kept.
    package static let kept = 20

    mutating func add(_ mistake: Mistake) {
      count += 1
      if first.count < Self.kept { first.append(mistake) }
    }

    /// A line for each that is kept, and how many more there are.
    package var description: String {
      var lines = first.map { "line \($0.line): \($0.message)" }
      let more = count - first.count
      if more > 0 { lines.append("and \(more) more") }
      return lines.joined(separator: "\n")
    }
  }

  /// Reads a script: grammar lines, `at` in milliseconds; a missing one repeats the line before.
  ///
  /// - Throws: Every line that is no change of a device in `registry`.
  package init(text: [UInt8], registry: Registry) throws(Mistakes) {
    var framer = LineFramer()
    framer.append(text.span)
    var changes: [ControlRequest] = []
    var latest = 0.0
    var mistakes = Mistakes()
    func take(_ line: ArraySlice<UInt8>, _ number: Int) {
      do throws(Mistake) {
        try Self.append(line, number, to: &changes, &latest, registry)
      } catch {
        mistakes.add(error)
      }
    }
    while let next = framer.next() {
      switch next {
      case .tooLong(let number):
        mistakes.add(Mistake(line: number, message: "the line is too long"))
      case .line(let bytes, let number): take(bytes, number)
      }
    }
    if let rest = framer.finish() { take(rest.bytes, rest.number) }
    guard mistakes.count == 0 else { throw mistakes }
    self.init(changes: changes)
  }

  private static func append(
    _ line: ArraySlice<UInt8>,
    _ number: Int,
    to changes: inout [ControlRequest],
    _ latest: inout Double,
    _ registry: Registry
  ) throws(Mistake) {
    var request: ControlRequest
    do throws(GrammarError) {
      request = try ControlRequest(line: line.span)
    } catch {
      throw Mistake(line: number, message: error.message)
    }
    switch request.operation {
    case .set, .step, .toggle, .flush, .cancel: break
    case .get, .pending, .watch, .describe, .record, .reload:
      throw Mistake(line: number, message: "set, step, toggle, flush and cancel can be played")
    }
    if !request.key.contains(where: { $0 == "*" || $0 == "?" }) {
      do throws(ValidationError) {
        _ = try registry.index(of: request.key)
      } catch {
        throw Mistake(line: number, message: error.description)
      }
    }
    let at = request.at ?? latest
    guard at >= latest else {
      throw Mistake(line: number, message: "\"at\" must not decrease")
    }
    latest = at
    request.at = at
    changes.append(request)
  }
}
