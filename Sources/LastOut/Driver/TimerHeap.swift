// Settle
// SPDX-License-Identifier: Apache-2.0

/// A binary heap with one deadline per number that tracks the position of each number.
struct TimerHeap {
  struct Timer {
    var deadline: UInt64
    var number: Int
  }

  private var timers: [Timer] = []
  private var places: [Int: Int] = [:]

  var first: Timer? { timers.first }

  /// Moves the deadline of `number` forward; returns whether it is now the earliest of all.
  mutating func advance(_ number: Int, to deadline: UInt64) -> Bool {
    if let place = places[number] {
      guard deadline < timers[place].deadline else { return false }
      timers[place].deadline = deadline
      siftUp(place)
    } else {
      timers.append(Timer(deadline: deadline, number: number))
      places[number] = timers.count - 1
      siftUp(timers.count - 1)
    }
    return timers[0].number == number
  }

  mutating func remove(_ number: Int) {
    guard let place = places.removeValue(forKey: number) else { return }
    let last = timers.removeLast()
    guard place < timers.count else { return }
    put(last, at: place)
    siftUp(place)
    siftDown(places[last.number] ?? place)
  }

  private mutating func siftUp(_ start: Int) {
    var place = start
    while place > 0, timers[place].deadline < timers[(place - 1) / 2].deadline {
      exchange(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
  }

  private mutating func siftDown(_ start: Int) {
    var place = start
    while true {
      var child = 2 * place + 1
      guard child < timers.count else { return }
      if child + 1 < timers.count, timers[child + 1].deadline < timers[child].deadline {
        child += 1
      }
      guard timers[child].deadline < timers[place].deadline else { return }
      exchange(place, child)
      place = child
    }
  }

  private mutating func exchange(_ one: Int, _ other: Int) {
    let timer = timers[one]
    put(timers[other], at: one)
    put(timer, at: other)
  }

  private mutating func put(_ timer: Timer, at place: Int) {
    timers[place] = timer
    places[timer.number] = place
  }
}
