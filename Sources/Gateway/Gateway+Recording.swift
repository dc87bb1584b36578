// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import LastOut

/// What is taken, written down for whoever asked: lines that `simulate` plays.
///
/// A recording is played where there are no devices, so a step or a toggle is written down as the
/// value that it led to; one that waits for the device's state, once that has come. What is refused
/// changes nothing and is left out, and so is a flush or a cancel that finds nothing.
extension Gateway {
  /// The longest source that the grammar takes, in bytes.
  private static let longestSource = 64

  /// Ends the quiet period of `key` now; `false` when nothing was pending.
  @discardableResult
  func flush(_ key: KeyIndex, at now: Moment, source: String) -> Bool {
    guard machine.flush(key, at: now) else { return false }
    if isRecorded { tellRecorders(.flush, of: key, at: now, source: source) }
    return true
  }

  /// Drops what waits for `key`; `false` when nothing did.
  @discardableResult
  func cancel(_ key: KeyIndex, at now: Moment, source: String) -> Bool {
    guard machine.cancel(key, at: now) else { return false }
    if isRecorded { tellRecorders(.cancel, of: key, at: now, source: source) }
    return true
  }

  /// Writes down a value that was taken.
  func record(
    _ value: Value,
    of key: KeyIndex,
    at now: Moment,
    origin: ChangeOrigin?,
    skipsQuiet: Bool
  ) {
    recordAppliedSteps()
    tellRecorders(
      .set(value.json),
      of: key,
      at: now,
      source: origin == nil ? "mqtt" : origin?.source,
      skipsQuiet: skipsQuiet
    )
  }

  /// Writes down the steps whose state has come since.
  func recordAppliedSteps() {
    guard !machine.appliedSteps.isEmpty else { return }
    var steps: [AppliedStep] = []
    swap(&steps, &machine.appliedSteps)
    for step in steps {
      record(
        step.value,
        of: step.key,
        at: step.at,
        origin: step.origin,
        skipsQuiet: step.skipsQuiet
      )
    }
  }

  /// Somebody began to record, or has left.
  func updateRecording() {
    isRecorded = controlSocket?.hasRecorders ?? false
    machine.notesAppliedSteps = isRecorded
    if !isRecorded { machine.appliedSteps = [] }
  }

  private func tellRecorders(
    _ operation: ControlRequest.Operation,
    of key: KeyIndex,
    at now: Moment,
    source: String?,
    skipsQuiet: Bool = false
  ) {
    var change = ControlRequest(operation, key: registry[key].key)
    change.now = skipsQuiet
    change.source = source.map(Self.shortened)
    controlSocket?.tellRecorders(change, at: now)
  }

  /// A topic as source may be longer than what the grammar reads.
  private static func shortened(_ source: String) -> String {
    guard source.utf8.count > longestSource else { return source }
    var result = ""
    for character in source {
      guard result.utf8.count + character.utf8.count <= longestSource else { break }
      result.append(character)
    }
    return result
  }
}
