// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting

/// What happens when in a simulated world: closures in order of time, equal times in the order of
/// planning.
final class VirtualTime {
  private(set) var now = Moment(nanoseconds: 1_000_000_000)
  var random: SeededGenerator
  private var entries: [(at: Moment, order: Int, run: () -> Void)] = []
  private var planned = 0

  init(_ random: SeededGenerator) { self.random = random }

  func plan(after delay: Duration, _ run: @escaping () -> Void) {
    plan(at: now.advanced(by: delay), run)
  }

  func plan(at moment: Moment, _ run: @escaping () -> Void) {
    planned += 1
    entries.append((moment, planned, run))
    var place = entries.count - 1
    while place > 0 {
      let parent = (place - 1) / 2
      guard isEarlier(place, parent) else { break }
      entries.swapAt(place, parent)
      place = parent
    }
  }

  /// Plans after a random time.
  func plan(within range: ClosedRange<Int>, _ run: @escaping () -> Void) {
    plan(after: .milliseconds(random.within(range)), run)
  }

  /// When the next entry is due.
  var next: Moment? { entries.first?.at }

  /// Runs the next entry.
  func runNext() {
    guard let entry = entries.first else { return }
    let last = entries.removeLast()
    if !entries.isEmpty {
      entries[0] = last
      sink()
    }
    now = max(now, entry.at)
    entry.run()
  }

  private func isEarlier(_ one: Int, _ other: Int) -> Bool {
    (entries[one].at, entries[one].order) < (entries[other].at, entries[other].order)
  }

  private func sink() {
    var place = 0
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2]
      where child < entries.count && isEarlier(child, least) { least = child }
      if least == place { return }
      entries.swapAt(place, least)
      place = least
    }
  }
}
