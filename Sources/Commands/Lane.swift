// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// An ordered, rate-limited road to one mesh or bus: urgent first, then device by device in turn.
struct Lane {
  private var bucket: TokenBucket?
  private var urgent = Fifo<KeyIndex>()
  /// Devices with something to send, in turn.
  private var turn = Fifo<Int>()
  private var keysByDevice: [Int: Fifo<KeyIndex>] = [:]
  private(set) var count = 0

  init(bucket: TokenBucket? = nil) {
    self.bucket = bucket
  }

  mutating func add(_ key: KeyIndex, device: Int, isUrgent: Bool) {
    count += 1
    guard !isUrgent else {
      urgent.append(key)
      return
    }
    if keysByDevice[device] == nil {
      keysByDevice[device] = Fifo()
      turn.append(device)
    }
    keysByDevice[device]?.append(key)
  }

  /// The next key, without taking a token for it.
  mutating func removeFirst() -> KeyIndex? {
    if let key = urgent.removeFirst() {
      count -= 1
      return key
    }
    guard let device = turn.removeFirst() else { return nil }
    let key = keysByDevice[device]?.removeFirst()
    if keysByDevice[device]?.isEmpty ?? true {
      keysByDevice[device] = nil
    } else {
      turn.append(device)
    }
    count -= 1
    return key
  }

  /// Takes a token for one command.
  mutating func takeToken(at now: Moment) -> Bool {
    bucket?.take(at: now) ?? true
  }

  /// When the next command may leave; `nil` with nothing to send or no limit.
  mutating func nextToken(after now: Moment) -> Moment? {
    count > 0 ? bucket?.nextToken(after: now) : nil
  }
}

/// First in, first out; constant time, memory returned when it runs empty.
struct Fifo<Element> {
  private var elements: [Element] = []
  private var head = 0

  var isEmpty: Bool { head == elements.count }

  mutating func append(_ element: Element) {
    elements.append(element)
  }

  mutating func removeFirst() -> Element? {
    guard head < elements.count else { return nil }
    defer {
      head += 1
      if head == elements.count {
        elements.removeAll(keepingCapacity: elements.capacity <= 64)
        head = 0
      } else if head >= 1024, head * 2 >= elements.count {
        elements.removeFirst(head)
        head = 0
      }
    }
    return elements[head]
  }
}
