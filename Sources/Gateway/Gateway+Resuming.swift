// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import Journal
import LastOut
import Operations

/// What becomes of the values that an earlier process has left in the journal.
extension Gateway {
  /// What the log says about them.
  struct Resumption {
    var resumed = 0
    var expired = 0
    var dropped = 0

    var isEmpty: Bool { resumed + expired + dropped == 0 }

    var fields: KeyValuePairs<String, String> {
      [
        "resumed": String(resumed), "expired": String(expired), "dropped": String(dropped),
      ]
    }
  }

  /// Hands a value to the machine; `false` when there is no such key any more, or it takes no such
  /// value.
  func resume(
    _ entry: JournalEntry,
    remaining: Duration,
    in link: JournalLink,
    at now: Moment
  ) -> Bool {
    guard let kept = JournalledValue(entry.value) else {
      return drop(entry, because: "it cannot be read", in: link, at: now)
    }
    do throws(ValidationError) {
      let key = try registry.index(of: entry.key)
      let entryKey = registry.properties[Int(key.rawValue)].key
      guard isJournalled(key), entryKey == entry.key else {
        throw .unsupported("\(entryKey) has taken its place and is not journalled under that name")
      }
      let property = registry.properties[Int(key.rawValue)].property
      let value = try property.value(from: kept.value)
      let number = machine.resume(
        value,
        of: key,
        at: now,
        expiresAt: now.advanced(by: remaining),
        origin: kept.origin,
        options: kept.options.isEmpty ? nil : kept.options
      )
      link.bind(
        key,
        number: number,
        sequence: entry.sequence,
        isUrgent: property.urgent.contains(value)
      )
      withholdIfNeeded(key, entry.sequence, in: link, at: now)
      return true
    } catch {
      return drop(entry, because: error.description, in: link, at: now)
    }
  }

  private func drop(
    _ entry: JournalEntry,
    because reason: String,
    in link: JournalLink,
    at now: Moment
  ) -> Bool {
    log.warning(
      "Journalled value dropped",
      ["key": entry.key, "value": Self.shown(entry), "reason": reason]
    )
    let number = link.journal.number(of: entry.key)
    link.journal.ended(number, entry.sequence, at: now, promptly: true)
    return false
  }

  /// Tells the end of a value whose time passed while no gateway ran.
  func expire(_ entry: JournalEntry, because reason: ExpiryReason, at now: Moment) {
    guard let kept = JournalledValue(entry.value), let key = try? registry.index(of: entry.key)
    else {
      log.warning("Journalled value expired", ["key": entry.key, "value": Self.shown(entry)])
      return
    }
    machine.expireUnresumed(
      try? registry.properties[Int(key.rawValue)].property.value(from: kept.value),
      of: key,
      at: now,
      origin: kept.origin,
      reason: reason.description
    )
  }

  private static func shown(_ entry: JournalEntry) -> String {
    JournalledValue(entry.value).map { Excerpt.of($0.value) } ?? "?"
  }
}
