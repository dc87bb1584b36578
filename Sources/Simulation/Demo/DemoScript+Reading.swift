// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
package import Devices
import JSON
import Values

extension DemoScript {
  /// A line of a script that cannot be played.
  package struct Mistake: Error, Hashable, Sendable {
    /// Counted from one.
    package var line: Int
    package var message: String
  }

  /// Every line of a script that cannot be played.
  package struct Mistakes: Error, Hashable, Sendable, CustomStringConvertible {
    /// The first ``kept`` mistakes, in order.
    package private(set) var first: [Mistake] = []
    /// The number of all mistakes.
    package private(set) var count = 0
    /// The maximum number of mistakes to keep.
    package static let kept = 20

    mutating func add(_ mistake: Mistake) {
      count += 1
      if first.count < Self.kept { first.append(mistake) }
    }

    /// One line for each kept mistake, and the number of further ones.
    package var description: String {
      var lines = first.map { "line \($0.line): \($0.message)" }
      let more = count - first.count
      if more > 0 { lines.append("and \(more) more") }
      return lines.joined(separator: "\n")
    }
  }

  /// Reads a script of grammar lines with `at` in milliseconds; a missing one repeats the line before.
  ///
  /// - Throws: ``Mistakes`` with every line that cannot be played on the devices in `registry`.
  package init(text: [UInt8], registry: Registry) throws(Mistakes) {
    var framer = LineFramer()
    framer.append(text.span)
    var changes: [ControlRequest] = []
    var latest = 0.0
    var mistakes = Mistakes()
    func read(_ line: ArraySlice<UInt8>, _ number: Int) {
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
      case .line(let bytes, let number): read(bytes, number)
      }
    }
    if let rest = framer.finish() { read(rest.bytes, rest.number) }
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
    case .scene, .get, .pending, .watch, .describe, .record, .reload, .status, .log, .devices:
      throw Mistake(line: number, message: "set, step, toggle, flush and cancel can be played")
    }
    guard !request.isDryRun else {
      throw Mistake(line: number, message: #""dry_run" cannot be played"#)
    }
    if !request.key.contains(where: { $0 == "*" || $0 == "?" }) {
      do throws(ValidationError) {
        if let members = request.deviceMembers {
          let device = try registry.deviceIndex(of: request.key)
          for member in members where !registry.devices[device].options.contains(member.name) {
            _ = try registry.index(of: member.name, inDevice: device)
          }
        } else {
          _ = try registry.index(of: request.key)
        }
      } catch {
        throw Mistake(line: number, message: registry.suggesting(error).description)
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
