// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Routing

/// What will happen in the world outside the gateway, in order of time; equal times keep the order
/// in which they were planned.
struct Agenda {
  enum Item {
    /// A publish reaches the broker.
    case arrival(Letter)
    /// The broker's answer reaches the gateway.
    case answer(UInt64, CommandStateMachine.Outcome, generation: Int)
    /// An answer that was given before, or that belongs to a connection long gone.
    case stray(UInt64)
    /// The broker hands a command to a device.
    case delivery(Letter)
    /// A device tells its state.
    case report(KeyIndex, JSONValue)
    /// The broker tells what it keeps as the last report.
    case reminder(KeyIndex)
    case availability(device: Int, source: Int, isOnline: Bool)
    /// The gateway notices that its connection is gone.
    case cut(generation: Int)
    case reconnection(generation: Int)
    case power(device: Int, isOn: Bool)
    /// The answer to a routed message reaches the gateway, if it is still the same one.
    case routeAnswer(UInt64, RouteMachine.Outcome, life: Int)
    /// The second broker is there.
    case farReconnection
  }

  /// One message on its way from the gateway to a device.
  struct Letter {
    let token: UInt64
    let device: Int
    let values: [(key: KeyIndex, value: Value)]
    /// Counts all publishes.
    let order: Int
    let generation: Int
    /// Whether it still reaches the broker when the connection ends meanwhile.
    let survivesCut: Bool
    let isRefused: Bool
    let isAnswered: Bool
  }

  struct Entry {
    let at: Moment
    let order: Int
    let item: Item
  }

  private var entries: [Entry] = []
  private var planned = 0

  /// The latest first, so that the next one is cheap to take.
  var next: Entry? { entries.last }

  var count: Int { entries.count }

  mutating func plan(_ item: Item, at moment: Moment) {
    planned += 1
    var place = entries.count
    while place > 0, entries[place - 1].at <= moment { place -= 1 }
    entries.insert(Entry(at: moment, order: planned, item: item), at: place)
  }

  mutating func take() -> Entry? { entries.popLast() }

  /// Takes out what is under way to the broker, the oldest first.
  mutating func takeArrivals() -> [Letter] {
    takeLetters { if case .arrival(let letter) = $0 { letter } else { nil } }
  }

  /// Takes out what is under way from the broker to a device, the oldest first.
  mutating func takeDeliveries(to device: Int) -> [Letter] {
    takeLetters {
      if case .delivery(let letter) = $0, letter.device == device { letter } else { nil }
    }
  }

  private mutating func takeLetters(_ letter: (Item) -> Letter?) -> [Letter] {
    var letters: [Letter] = []
    entries.removeAll { entry in
      guard let found = letter(entry.item) else { return false }
      letters.append(found)
      return true
    }
    return letters.reversed()
  }
}
