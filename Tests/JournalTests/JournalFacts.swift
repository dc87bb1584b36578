// Settle
// SPDX-License-Identifier: Apache-2.0

import Testing

/// The output of a `JournalWorker` about its values: lines such as `d device/3 1000017`.
struct JournalFacts {
  private struct Key {
    var accepted = 0
    var durable = 0
    var finished = 0
  }

  private var keys: [String: Key] = [:]
  /// Reports and values that were checked.
  private(set) var durable = 0
  private(set) var kept = 0

  mutating func add(_ line: some StringProtocol) {
    let parts = line.split(whereSeparator: \.isWhitespace)
    guard parts.count == 3, let number = Int(parts[2]) else { return }
    let key = String(parts[1])
    switch parts[0] {
    case "a": keys[key, default: Key()].accepted = number
    case "d":
      keys[key, default: Key()].durable = number
      durable += 1
    case "f": keys[key, default: Key()].finished = number
    default: Issue.record("the worker reported \(line)")
    }
  }

  /// Checks what a start replays, as `key=value`, against all facts so far.
  mutating func check(_ replayed: [String], _ place: String) {
    var rows: [String: Int] = [:]
    for entry in replayed {
      let parts = entry.split(separator: "=")
      rows[String(parts[0])] = Int(parts[1])
    }
    for (name, key) in keys {
      let row = rows[name]
      let newest = max(key.durable, key.finished)
      #expect(row ?? newest >= newest, "\(place): an older value of \(name) came back")
      #expect(row ?? 0 <= key.accepted, "\(place): \(name) has a value that was never accepted")
      guard key.durable > key.finished else { continue }
      #expect(row != nil, "\(place): \(key.durable) of \(name) was durable and is lost")
      kept += 1
    }
  }
}
