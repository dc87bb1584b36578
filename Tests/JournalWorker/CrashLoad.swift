// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Glibc
import Journal
import JournalDriver
import LastOut
import Operations
import WriteRecorder

/// Random values for a few keys, until the process is killed; the calls are the gateway's.
final class CrashLoad {
  private struct Number: JournalValue {
    var number: Int
    var bytes: [UInt8] { Array(String(number).utf8) }
  }

  private let loop: EventLoop
  private let journal: DrivenJournal
  private let log: Int32
  private var timer: LoopTimer?
  private var number: Int
  /// Accepted values in order, until they are reported durable.
  private var unreported: [(sequence: UInt64, key: String, number: Int)] = []
  /// The newest value of each key that has not ended.
  private var newest: [String: (sequence: UInt64, number: Int)] = [:]
  /// The requests of the journal.
  private var kept: [UInt64: Number] = [:]

  init(path: String, log: String, base: Int) throws {
    loop = try EventLoop()
    number = base
    self.log = unsafe open(log, O_WRONLY | O_APPEND | O_CREAT, 0o600)
    let wakeUp = WakeUp()
    let waker = try loop.makeWaker { wakeUp.call?() }
    var settings = JournalPlan.Settings()
    settings.commit = .milliseconds(2)
    settings.removal = .milliseconds(5)
    journal = try DrivenJournal(path: path, settings: settings) { waker.wake() }
    journal.keptValue = { [unowned self] _, sequence in kept[sequence] ?? Number(number: -1) }
    wakeUp.call = { [unowned self] in serve() }
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
      if newest[key] != nil, Int.random(in: 0..<3) == 0 {
        finish(key, at: now)
      } else {
        accept(key, at: now)
      }
    }
  }

  private func accept(_ key: String, at now: Moment) {
    number += 1
    note("a", key, number)
    let sequence = journal.accept(
      journal.number(of: key),
      replacing: newest[key]?.sequence,
      at: now,
      expiresAt: now.advanced(by: .seconds(600)),
      isUrgent: Int.random(in: 0..<20) == 0
    )
    kept[sequence] = Number(number: number)
    newest[key] = (sequence, number)
    unreported.append((sequence, key, number))
  }

  /// Sends the newest value of a key and has it acknowledged, unless a crash could send an older
  /// one after it.
  private func finish(_ key: String, at now: Moment) {
    let place = journal.number(of: key)
    guard let value = newest[key], !journal.holdsOlder(place, than: value.sequence, at: now)
    else { return }
    note("f", key, value.number)
    newest[key] = nil
    journal.sending(place, sequence: value.sequence)
    journal.ended(place, value.sequence, at: now, promptly: false)
  }

  private func serve() {
    journal.advance(to: EventLoop.now())
    for event in journal.dequeueEvents() {
      switch event {
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

  /// Writes one line; it survives a kill from here on.
  private func note(_ fact: String, _ key: String, _ number: Int) {
    let line = Array("\(fact) \(key) \(number)\n".utf8)
    _ = unsafe write(log, line, line.count)
    unsafe recorder_note(line, line.count)
  }
}

/// Connects a handler to an owner that is created after it.
final class WakeUp {
  var call: (() -> Void)?
}
