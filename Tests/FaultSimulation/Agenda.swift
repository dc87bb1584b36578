// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Routing
import Values

/// The planned events outside the gateway, in order of time; equal times keep the order of
/// planning.
struct Agenda {
  enum Item {
    /// A publish reaches the broker.
    case arrival(Message)
    /// The broker's reply reaches the gateway.
    case answer(UInt64, PublishOutcome, generation: Int)
    /// A duplicate reply, or one of an earlier connection.
    case duplicateAnswer(UInt64)
    /// The broker delivers a command to a device.
    case delivery(Message)
    /// A device reports its state.
    case report(KeyIndex, JSONValue)
    /// The broker sends the retained report.
    case retainedReport(KeyIndex)
    case availability(device: Int, source: Int, isOnline: Bool)
    /// The gateway detects the loss of its connection.
    case cut(generation: Int)
    case reconnection(generation: Int)
    /// What the gateway has sent to itself comes back, behind what the broker retains.
    case marker(generation: Int)
    case power(device: Int, isOn: Bool)
    /// The reply to a routed message reaches the gateway, if the gateway was not restarted.
    case routeAnswer(UInt64, PublishOutcome, life: Int)
    /// The message of a rule outside reaches the gateway.
    case rule(Value)
    /// The second broker is connected.
    case farReconnection
  }

  /// One message in flight from the gateway to a device.
  struct Message {
    let token: UInt64
    var device: Int
    var values: [(key: KeyIndex, value: Value)]
    /// The number of the publish.
    let order: Int
    let generation: Int
    /// Whether it reaches the broker even if the connection ends meanwhile.
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

  /// The latest first, so that the next one is cheap to remove.
  var next: Entry? { entries.last }

  var count: Int { entries.count }

  mutating func plan(_ item: Item, at moment: Moment) {
    planned += 1
    var place = entries.count
    while place > 0, entries[place - 1].at <= moment { place -= 1 }
    entries.insert(Entry(at: moment, order: planned, item: item), at: place)
  }

  mutating func removeNext() -> Entry? { entries.popLast() }

  /// Removes and returns the messages in flight to the broker, the oldest first.
  mutating func removeArrivals() -> [Message] {
    removeMessages { if case .arrival(let message) = $0 { message } else { nil } }
  }

  /// Removes and returns the messages in flight from the broker to a device, the oldest first.
  mutating func removeDeliveries(to device: Int) -> [Message] {
    removeMessages {
      if case .delivery(let message) = $0, message.device == device { message } else { nil }
    }
  }

  private mutating func removeMessages(_ message: (Item) -> Message?) -> [Message] {
    var messages: [Message] = []
    entries.removeAll { entry in
      guard let found = message(entry.item) else { return false }
      messages.append(found)
      return true
    }
    return messages.reversed()
  }
}
