// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Glibc
import Journal
import JournalDriver
import LastOut
import Operations

/// A steady load on 30 keys, each value acknowledged 400 ms later; prints what reached the disk.
final class MeasuredLoad {
  private struct Payload: JournalValue {
    var number: UInt64
    var bytes: [UInt8] {
      Array(#"{"value":\#(number % 254),"id":"01J9Z6V0000000000000000000"}"#.utf8)
    }
  }

  private let loop: EventLoop
  private let journal: DrivenJournal
  private let seconds: Int
  private let rate: Int
  private var timer: LoopTimer?
  private var journalTimer: LoopTimer?
  private var accepted = 0
  private var durableReports = 0
  private var open: [(at: Moment, key: JournalKey, sequence: UInt64)] = []
  private var newest: [JournalKey: UInt64] = [:]
  private var start = Moment.zero
  private var before: (asked: Int, device: Int) = (0, 0)

  init(path: String, seconds: Int, rate: Int) throws {
    loop = try EventLoop()
    self.seconds = seconds
    self.rate = rate
    let wakeUp = WakeUp()
    let waker = try loop.makeWaker { wakeUp.call?() }
    journal = try DrivenJournal(path: path) { waker.wake() }
    journal.keptValue = { _, sequence in Payload(number: sequence) }
    wakeUp.call = { [unowned self] in serve() }
    timer = try loop.makeTimer { [unowned self] in tick() }
    journalTimer = try loop.makeTimer { [unowned self] in serve() }
  }

  func run() {
    start = EventLoop.now()
    before = Self.written()
    tick()
    loop.run()
  }

  private func tick() {
    let now = EventLoop.now()
    guard start.duration(to: now) < .seconds(seconds) else { return report() }
    let key = journal.number(of: "room-\(accepted % 30)/brightness")
    let sequence = journal.accept(
      key,
      replacing: newest[key],
      at: now,
      expiresAt: now.advanced(by: .seconds(60)),
      isUrgent: false
    )
    newest[key] = sequence
    accepted += 1
    open.append((now.advanced(by: .milliseconds(400)), key, sequence))
    while let first = open.first, first.at <= now {
      journal.sending(first.key, sequence: first.sequence)
      journal.ended(first.key, first.sequence, at: now, promptly: false)
      open.removeFirst()
    }
    serve()
    timer?.arm(at: start.advanced(by: .nanoseconds(1_000_000_000 / rate) * accepted))
  }

  private func serve() {
    journal.advance(to: EventLoop.now())
    for event in journal.dequeueEvents() {
      if case .durable = event { durableReports += 1 } else { print(event) }
    }
    journalTimer?.arm(at: journal.nextDeadline)
  }

  private func report() {
    let after = Self.written()
    let (asked, device) = (after.asked - before.asked, after.device - before.device)
    print(
      """
      changes \(accepted), commits reported \(durableReports), seconds \(seconds)
      bytes written by the program \(asked): \(asked / max(accepted, 1)) per change, \
      \(Double(asked) / Double(seconds) * 3600 / 1e6) MB per hour
      bytes written to the disk \(device): \(device / max(accepted, 1)) per change, \
      \(Double(device) / Double(seconds) * 3600 / 1e6) MB per hour
      """
    )
    loop.stop()
  }

  /// The bytes that this process has written so far: as requested, and as dirty pages.
  private static func written() -> (asked: Int, device: Int) {
    let descriptor = unsafe Glibc.open("/proc/self/io", O_RDONLY)
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 1024)
    let count = unsafe read(descriptor, &bytes, bytes.count)
    let text = String(decoding: bytes[..<max(count, 0)], as: UTF8.self)
    func field(_ name: String) -> Int {
      for line in text.split(separator: "\n") where line.hasPrefix(name + ":") {
        return Int(line.dropFirst(name.count + 2)) ?? 0
      }
      return 0
    }
    return (field("wchar"), field("write_bytes"))
  }
}
