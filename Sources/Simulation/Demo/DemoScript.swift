// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
package import Devices
import JSON
import Values

/// A script of timed changes.
package struct DemoScript: Sendable {
  /// A section of the script that is announced.
  package struct Act: Hashable, Sendable {
    /// Milliseconds after the start.
    package var at: Double
    package var title: String
  }

  package var acts: [Act] = []
  /// Changes with `at` in milliseconds, in order of time.
  package var changes: [ControlRequest]
  /// Whether the gateway is shut down right after the last change, before it has settled.
  package var endsAbruptly = false

  /// Five gestures and a shutdown, with speeds and pauses that are stated, not recorded.
  package static let standard: DemoScript = {
    var builder = Builder()
    builder.act(
      300,
      "A slider is dragged over 100 marks: 60 in 0.9 s, 0.15 s of pause, 40 in 0.6 s"
    )
    builder.drag("desk-lamp/brightness", from: 20, to: 80, steps: 60, lasting: 900, at: 300)
    builder.drag("desk-lamp/brightness", from: 80, to: 120, steps: 40, lasting: 600, at: 1350)
    builder.act(2900, "A thermostat is tapped up ten times, about five taps a second")
    for tap in Gesture.taps(pauses: [220, 180, 210, 190, 230, 200, 180, 210, 200]) {
      builder.add(.step(0.5), "boiler/target_temperature", at: 2900 + tap)
    }
    builder.act(3500, "A blind is moved up in three nudges 0.2 s apart, and stopped while it moves")
    for (number, position) in [60, 75, 80].enumerated() {
      let at = 3500 + 200 * Double(number)
      builder.add(.set(.integer(Int64(position))), "hall-blind/position", at: at)
    }
    builder.add(.set("STOP"), "hall-blind/command", at: 6900)
    builder.act(7600, "A dimmer with policy: live follows the finger: 40 marks in 1.5 s")
    builder.drag("porch-light/brightness", from: 50, to: 90, steps: 40, lasting: 1500, at: 7600)
    builder.act(10_000, "Two sliders of one lamp move together for 0.6 s: 80 and 24 marks")
    builder.drag("desk-lamp/brightness", from: 120, to: 200, steps: 80, lasting: 600, at: 10_000)
    builder.drag("desk-lamp/color_temp", from: 370, to: 250, steps: 24, lasting: 600, at: 10_000)
    builder.act(11_600, "One more change, and the gateway receives SIGTERM before it has settled")
    builder.add(.set(60), "desk-lamp/brightness", at: 11_600)
    return builder.script(endsAbruptly: true)
  }()

  /// A few gestures on the devices of one convention, of at most 3.5 seconds.
  static func short(
    slider: (key: String, from: Double, to: Double),
    button: String?,
    cover: String?,
    stepper: (key: String, amount: Double)?
  ) -> DemoScript {
    var builder = Builder()
    builder.act(100, "A slider is dragged over 60 marks in 0.8 s")
    builder.drag(slider.key, from: slider.from, to: slider.to, steps: 60, lasting: 800, at: 100)
    if let cover {
      builder.act(1100, "A cover is sent to three places within half a second")
      for (number, position) in ([30, 50, 20] as [Int64]).enumerated() {
        builder.add(.set(.integer(position)), cover, at: 1100 + 200 * Double(number))
      }
    }
    if let button {
      builder.act(1900, "A button is pressed three times within 10 ms")
      for press in 0..<3 { builder.add(.toggle, button, at: 1900 + 5 * Double(press)) }
    }
    if let stepper {
      builder.act(2400, "A thermostat is tapped up five times")
      for tap in Gesture.taps(pauses: [220, 180, 210, 190]) {
        builder.add(.step(.number(stepper.amount)), stepper.key, at: 2400 + tap)
      }
    }
    return builder.script(endsAbruptly: false)
  }

  /// Collects gestures in any order and sorts them.
  private struct Builder {
    private var acts: [Act] = []
    private var changes: [ControlRequest] = []

    mutating func act(_ at: Double, _ title: String) { acts.append(Act(at: at, title: title)) }

    mutating func add(_ operation: ControlRequest.Operation, _ key: String, at: Double) {
      var request = ControlRequest(operation, key: key)
      request.at = at
      changes.append(request)
    }

    mutating func drag(
      _ key: String,
      from start: Double,
      to end: Double,
      steps: Int,
      lasting milliseconds: Double,
      at: Double
    ) {
      let points = Gesture.drag(from: start, to: end, steps: steps, milliseconds: milliseconds)
      for point in points {
        add(.set(.number(point.value.rounded())), key, at: at + point.at)
      }
    }

    func script(endsAbruptly: Bool) -> DemoScript {
      let sorted = changes.enumerated().sorted {
        ($0.element.at ?? 0, $0.offset) < ($1.element.at ?? 0, $1.offset)
      }
      return DemoScript(acts: acts, changes: sorted.map(\.element), endsAbruptly: endsAbruptly)
    }
  }
}

extension DemoScript {
  /// Why a line of a script cannot be played.
  private struct Unplayable: Error { let message: String }

  /// Every line of a script that cannot be played.
  package struct Mistakes: Error, Hashable, Sendable, CustomStringConvertible {
    /// The first ``kept`` mistakes, in order.
    package private(set) var first: [TimelineSession.Mistake] = []
    /// The number of all mistakes.
    package private(set) var count = 0
    /// The maximum number of mistakes to keep.
    package static let kept = 20

    mutating func add(_ message: String, inLine number: Int) {
      count += 1
      if first.count < Self.kept { first.append(.init(line: number, message: message)) }
    }

    /// One line for each kept mistake, and the number of further ones.
    package var description: String {
      var lines = first.map { "line \($0.line): \($0.message)" }
      let more = count - first.count
      if more > 0 { lines.append("and \(more) more") }
      return lines.joined(separator: "\n")
    }
  }

  /// Reads a script of grammar lines with `at` in milliseconds; a missing one repeats the line
  /// before.
  ///
  /// - Throws: ``Mistakes`` with every line that cannot be played on the devices in `registry`.
  package init(text: [UInt8], registry: Registry) throws(Mistakes) {
    var framer = LineFramer()
    framer.append(text.span)
    var changes: [ControlRequest] = []
    var mistakes = Mistakes()
    while let next = framer.next() ?? framer.finish() {
      switch next {
      case .tooLong(let number): mistakes.add("the line is too long", inLine: number)
      case .line(let line, let number):
        do throws(Unplayable) {
          let change = try Self.change(line, after: changes.last?.at ?? 0, registry)
          changes.append(change)
        } catch {
          mistakes.add(error.message, inLine: number)
        }
      }
    }
    guard mistakes.count == 0 else { throw mistakes }
    self.init(changes: changes)
  }

  private static func change(
    _ line: ArraySlice<UInt8>,
    after latest: Double,
    _ registry: Registry
  ) throws(Unplayable) -> ControlRequest {
    var request: ControlRequest
    do throws(GrammarError) {
      request = try ControlRequest(line: line.span)
    } catch {
      throw Unplayable(message: error.message)
    }
    switch request.operation {
    case .set, .step, .toggle, .flush, .cancel: break
    case .scene, .get, .pending, .watch, .describe, .record, .reload, .status, .log, .devices:
      throw Unplayable(message: "set, step, toggle, flush and cancel can be played")
    }
    guard !request.isDryRun else {
      throw Unplayable(message: #""dry_run" cannot be played"#)
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
        throw Unplayable(message: registry.suggesting(error).description)
      }
    }
    let at = request.at ?? latest
    guard at >= latest else { throw Unplayable(message: "\"at\" must not decrease") }
    request.at = at
    return request
  }
}

/// The times of the changes that a user's gesture makes.
///
/// A reaching hand follows a minimum-jerk path: slow, fast in the middle (1.875 times the mean
/// speed), slow again. A slider therefore reports most of its changes in the middle of a drag.
package enum Gesture {
  /// One change of a value, in milliseconds after the gesture's start.
  package struct Point: Hashable, Sendable {
    package var at: Double
    package var value: Double

    package init(at: Double, value: Double) {
      self.at = at
      self.value = value
    }
  }

  /// Drags a slider from `start` to `end` over `steps` marks in `milliseconds`.
  ///
  /// Each mark is a change at the time when the hand crosses it.
  package static func drag(
    from start: Double,
    to end: Double,
    steps: Int,
    milliseconds: Double
  ) -> [Point] {
    (1...max(1, steps)).map { step in
      let part = Double(step) / Double(max(1, steps))
      return Point(at: milliseconds * time(atPath: part), value: start + (end - start) * part)
    }
  }

  /// The times of taps, in milliseconds; `pauses` are the times between them.
  package static func taps(pauses: [Double]) -> [Double] {
    pauses.reduce(into: [0]) { times, pause in
      times.append(times[times.count - 1] + pause)
    }
  }

  /// The fraction of the path at the fraction `time` of the duration, both 0 to 1.
  package static func path(atTime time: Double) -> Double {
    time * time * time * (10 + time * (6 * time - 15))
  }

  /// The inverse of ``path(atTime:)``, by bisection.
  package static func time(atPath part: Double) -> Double {
    guard part > 0 else { return 0 }
    guard part < 1 else { return 1 }
    var low = 0.0
    var high = 1.0
    for _ in 0..<40 {
      let middle = (low + high) / 2
      if path(atTime: middle) < part { low = middle } else { high = middle }
    }
    return (low + high) / 2
  }
}
