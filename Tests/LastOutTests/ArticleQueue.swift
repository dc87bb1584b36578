// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOutTesting

/// The queue of the article "STKLastOutQueue", in this project's words: one timer per element, on
/// one thread, two seconds.
///
/// A task may call the queue again. Timers of the same moment fire in the order of their making.
final class ArticleQueue {
  private struct Element {
    let task: () -> Void
    let onStart: () -> Void
    let due: Int
    let timer: Int
  }

  static let delay = 2000

  private var elements: [String: Element] = [:]
  private var timers = 0
  private(set) var now = 0
  /// The keys of tasks that run, or that were dequeued and wait for their turn.
  private var taken: [String] = []
  /// Whether a task ran inside or before an older one of its key, as the article's queue allows.
  private(set) var hasOverlapped = false

  func enqueueTask(_ task: @escaping () -> Void, onStart: @escaping () -> Void, forKey key: String)
  {
    timers += 1
    // The timer of a replaced element is removed with it.
    elements[key] = Element(task: task, onStart: onStart, due: now + Self.delay, timer: timers)
  }

  func executePendingTasks() {
    let pending = elements.sorted { $0.value.timer < $1.value.timer }
    elements = [:]
    let keys = pending.map(\.key)
    if !Set(keys).isDisjoint(with: taken) { hasOverlapped = true }
    taken += keys
    for (key, element) in pending {
      perform(element)
      if let place = taken.lastIndex(of: key) { taken.remove(at: place) }
    }
  }

  /// Lets the run loop run until a moment, in milliseconds.
  func run(until end: Int) {
    while let (key, element) = next, element.due <= end {
      now = max(now, element.due)
      // Removed before it runs: the task may enqueue its own key.
      elements[key] = nil
      taken.append(key)
      perform(element)
      taken.removeLast()
    }
    now = max(now, end)
  }

  func runToTheEnd() {
    while let (_, element) = next { run(until: element.due) }
  }

  private var next: (String, Element)? {
    elements.min { ($0.value.due, $0.value.timer) < ($1.value.due, $1.value.timer) }
      .map { ($0.key, $0.value) }
  }

  private func perform(_ element: Element) {
    element.onStart()
    element.task()
  }
}
