// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Glibc
import Journal
import LastOut
import Operations

/// Random values for a few keys, until somebody kills the process.
final class CrashLoad {
  private let loop: EventLoop
  private let journal: Journal
  private let log: Int32
  private var timer: LoopTimer?
  private var number: Int
  /// Accepted values in order, until they are reported.
  private var unreported: [(sequence: UInt64, key: String, number: Int)] = []
  /// The newest accepted value of each key.
  private var newest: [String: (sequence: UInt64, number: Int)] = [:]

  init(path: String, log: String, base: Int) throws {
    loop = try EventLoop()
    number = base
    self.log = unsafe open(log, O_WRONLY | O_APPEND | O_CREAT, 0o600)
    let back = Back()
    let waker = try loop.makeWaker { back.call?() }
    var settings = JournalPlan.Settings()
    settings.commit = .milliseconds(2)
    settings.removal = .milliseconds(5)
    journal = try Journal(path: path, settings: settings) { waker.wake() }
    back.call = { [unowned self] in serve() }
    timer = try loop.makeTimer { [unowned self] in
      work()
      serve()
      timer?.arm(at: EventLoop.now().advanced(by: .microseconds(500)))
    }
  }

  func run() {
    timer?.arm(at: EventLoop.now())
    loop.run()
  }

  private func work() {
    let now = EventLoop.now()
    for _ in 0..<Int.random(in: 1...4) {
      let key = "device/\(Int.random(in: 0..<12))"
      if let value = newest[key], Int.random(in: 0..<3) == 0 {
        note("f", key, value.number)
        journal.finished(key, through: value.sequence, at: now)
        newest[key] = nil
      } else {
        number += 1
        note("a", key, number)
        let receipt = journal.accept(
          Array(String(number).utf8),
          for: key,
          ttl: .seconds(600),
          at: now,
          isUrgent: Int.random(in: 0..<20) == 0
        )
        newest[key] = (receipt.sequence, number)
        unreported.append((receipt.sequence, key, number))
      }
    }
  }

  private func serve() {
    journal.advance(to: EventLoop.now())
    for news in journal.takeNews() {
      switch news {
      case .durable(let through):
        while let first = unreported.first, first.sequence <= through {
          note("d", first.key, first.number)
          unreported.removeFirst()
        }
      case .replay(let entry, _):
        let value = Int(String(decoding: entry.value, as: UTF8.self)) ?? -1
        newest[entry.key] = (entry.sequence, value)
      case .memoryOnly, .recovered, .expired, .setAside: note("x", "unexpected", 0)
      }
    }
  }

  /// One line, in the kernel's hands when this returns: it survives the kill.
  private func note(_ fact: String, _ key: String, _ number: Int) {
    let line = Array("\(fact) \(key) \(number)\n".utf8)
    _ = unsafe write(log, line, line.count)
  }
}

/// Leads from a handler back to an owner that is made after it.
final class Back {
  var call: (() -> Void)?
}
