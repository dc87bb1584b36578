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

  /// Reads a script: grammar lines, `at` in milliseconds; a missing one repeats the line before.
  ///
  /// - Throws: The first line that is no change of a device in `registry`.
  package init(text: [UInt8], registry: Registry) throws(Mistake) {
    var framer = LineFramer()
    framer.append(text.span)
    var changes: [ControlRequest] = []
    var latest = 0.0
    while let next = framer.next() {
      switch next {
      case .tooLong(let number): throw Mistake(line: number, message: "the line is too long")
      case .line(let bytes, let number):
        try Self.append(bytes, number, to: &changes, &latest, registry)
      }
    }
    if let rest = framer.finish() {
      try Self.append(rest.bytes, rest.number, to: &changes, &latest, registry)
    }
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
    case .get, .pending, .watch, .describe:
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
