// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
import Devices
package import LastOut

/// Remembers the newest unsent value of every key, at once and for ever: what a journal promises.
package struct Faithful: RestartMemory {
  private var news: [MemoryNews] = []
  /// All that were neither sent nor ended, by their numbers; the oldest first.
  private var kept: [(number: UInt64, survivor: Survivor)] = []

  package init() {}

  package var images: [[Survivor]] { [survivors] }

  /// The newest of each key.
  private var survivors: [Survivor] {
    var newest: [KeyIndex: Survivor] = [:]
    for (_, survivor) in kept { newest[survivor.key] = survivor }
    return newest.values.sorted { $0.order < $1.order }
  }

  package mutating func take(_ event: CommandEvent, _ survivor: Survivor?) {
    switch event.phase {
    case .accepted:
      if let survivor { keep(survivor, as: event.number) }
    case .rejected, .sending: break
    case .superseded, .unchanged, .cancelled, .sent, .confirmed, .failed, .expired:
      kept.removeAll { $0.number == event.number }
    }
    news.append(.told(number: event.number, phase: event.phase, isDurable: true))
  }

  private mutating func keep(_ survivor: Survivor, as number: UInt64) {
    kept.removeAll { $0.survivor.order == survivor.order }
    kept.append((number, survivor))
  }

  package mutating func resumed(_ survivor: Survivor, as number: UInt64) {
    keep(survivor, as: number)
  }

  package mutating func takeNews() -> [MemoryNews] {
    defer { news.removeAll(keepingCapacity: true) }
    return news
  }

  package mutating func restart(
    after end: GatewayEnd,
    at now: Moment,
    start: Moment
  ) -> [Survivor] {
    news = []
    let found = survivors
    kept = []
    for survivor in found {
      guard start < survivor.expiresAt else {
        news.append(.expired(survivor))
        continue
      }
      // No number of the new machine: it has not been accepted there.
      kept.append((0, survivor))
      news.append(.replay(survivor))
    }
    return found
  }
}
