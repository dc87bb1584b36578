// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import LastOutTesting
import Operations
import TestBroker

/// Rounds of a gateway under load that is killed at a random moment and restarted, and the messages
/// that the broker received.
///
/// Values of a key grow with each change, so that the larger of two is the newer.
final class CrashRounds {
  /// What one key was promised and heard.
  struct Key {
    /// The last value asked for.
    var last = 0
    /// The newest value that was answered `accepted`.
    var accepted = 0
    /// The newest value that has reached the broker.
    var seen = 0
  }

  /// One value that reached the broker.
  struct Arrival {
    var key: Int
    var value: Int
    /// Counts the ends of the gateway's connections to the broker.
    var life: Int
    var isReplayed: Bool
  }

  struct Figures {
    var rounds = 0
    var changes = 0
    var accepted = 0
    var rejected = 0
    var published = 0
    var replayed = 0
    /// Values that reached the broker twice or more often.
    var repeated = 0
    /// Rounds after which something accepted had not reached the broker yet.
    var resumed = 0
  }

  let seed: UInt64
  private(set) var figures = Figures()
  private(set) var keys: [Key]
  private let bench: Bench
  private let witness: RecordingSubscriber
  private var generator: SeededGenerator
  /// Every command that reached the broker, in order.
  private var arrivals: [Arrival] = []
  /// How many messages have been looked at.
  private var digested = 0
  private var life = 0
  private static let delays = ["0", "5ms", "30ms", "120ms"]

  init(seed: UInt64, keys count: Int = 24) throws {
    self.seed = seed
    generator = SeededGenerator(seed: seed)
    keys = Array(repeating: Key(), count: count)
    let devices = (0..<count).map { number in
      let delay = Self.delays[number % Self.delays.count]
      let policy =
        number % 5 == 4
        ? "{delay: 40ms, max_wait: 40ms, leading: true}" : "{delay: \(delay), max_wait: 150ms}"
      return DeviceText.levels(1, policy: policy, more: ", ttl: 1h")
        .replacing("dev0", with: "dev\(number)")
    }
    bench = try Bench(
      devices: devices.joined(),
      settings: "journal: {path: journal.db, commit: 20ms}"
    )
    try bench.broker.start()
    witness = try bench.witness()
  }

  /// Lives `count` lives and one more that ends well; returns what went wrong.
  func live(_ count: Int) throws -> [String] {
    for _ in 0..<count {
      try bench.launchGateway()
      try round()
      figures.rounds += 1
    }
    try bench.startGateway()
    _ = awaitAccepted()
    try bench.stop()
    return problems()
  }

  // MARK: - One round

  private func round() throws {
    let client = try bench.client()
    // Some lives end while they still resume what the one before has left.
    if pick(3) == 0 { _ = awaitAccepted() }
    let halt = pick(6) == 0 ? pick(100) : -1
    let leaves = pick(8) == 0
    for step in 0...pick(250) {
      if step == halt { bench.broker.pause() }
      for _ in 0..<pick(8) { client.send(bytes: change()) }
      client.takeIn()
      var pause = timespec(tv_sec: 0, tv_nsec: pick(1_500_000))
      unsafe nanosleep(&pause, nil)
    }
    if leaves { try bench.running().signal(SIGTERM) }
    try bench.crash(afterSIGTERM: leaves)
    bench.broker.resume()
    while let line = client.nextLine() { take(line) }
    digest(witness.messages)
    if !hasEverything { figures.resumed += 1 }
  }

  /// The next change, as a line.
  private func change() -> [UInt8] {
    let key = pick(keys.count)
    keys[key].last += 1
    figures.changes += 1
    let now = pick(4) == 0 ? #","now":true"# : ""
    return Array(
      #"{"id":"\#(key):\#(keys[key].last)","key":"dev\#(key)/level","set":\#(keys[key].last)\#(now)}"#
        .utf8
    ) + [0x0A]
  }

  /// One reply: `{"id":"KEY:VALUE","key":…,"phase":"…",…}`.
  private func take(_ line: String) {
    let parts = line.split(separator: "\"", maxSplits: 12)
    guard parts.count > 10, let id = parts.dropFirst(3).first?.split(separator: ":"),
      id.count == 2, let key = Int(id[0]), let value = Int(id[1])
    else { return }
    if line.contains(#""phase":"accepted""#) {
      figures.accepted += 1
      keys[key].accepted = max(keys[key].accepted, value)
    } else {
      figures.rejected += 1
    }
  }

  /// Waits until everything accepted, or something newer, has reached the broker.
  private func awaitAccepted() -> Bool {
    witness.waitFor { messages in
      digest(messages)
      return hasEverything
    }
  }

  private var hasEverything: Bool { keys.allSatisfy { $0.seen >= $0.accepted } }

  // MARK: - What was heard

  /// Notes the commands among what has come since the last call.
  private func digest(_ messages: [RecordingSubscriber.Message]) {
    for message in messages[digested...] {
      // Commands leave before the status does: only the last will tells two lives apart.
      if message.topic == "settle/status", message.text == "offline" { life += 1 }
      guard message.topic.hasPrefix("cmd/dev"), let key = Int(message.topic.dropFirst(7)),
        let value = Int(message.text.dropFirst(5).dropLast())
      else { continue }
      let isReplayed = message.userProperties["replayed"] == "1"
      arrivals.append(Arrival(key: key, value: value, life: life, isReplayed: isReplayed))
      keys[key].seen = max(keys[key].seen, value)
    }
    digested = messages.count
  }

  /// What is wrong with all that was heard.
  private func problems() -> [String] {
    var problems: [String] = []
    digest(witness.messages)
    var newest = Array(repeating: 0, count: keys.count)
    var seen: [[Int]: [Arrival]] = [:]
    for arrival in arrivals {
      let name = "dev\(arrival.key)=\(arrival.value)"
      if arrival.value < newest[arrival.key] {
        problems.append("\(name) came after \(newest[arrival.key]), in life \(arrival.life)")
      }
      newest[arrival.key] = max(newest[arrival.key], arrival.value)
      let before = seen[[arrival.key, arrival.value], default: []]
      if before.contains(where: { $0.life == arrival.life }) {
        problems.append("\(name) came twice in life \(arrival.life)")
      }
      if !before.isEmpty, !arrival.isReplayed {
        problems.append("\(name) came again without a mark, in life \(arrival.life)")
      }
      seen[[arrival.key, arrival.value]] = before + [arrival]
      figures.published += 1
      if arrival.isReplayed { figures.replayed += 1 }
    }
    figures.repeated = seen.values.count { $0.count > 1 }
    for key in keys.indices where newest[key] < keys[key].accepted {
      problems.append("dev\(key)=\(keys[key].accepted) was accepted and lost")
    }
    return problems
  }

  private func pick(_ bound: Int) -> Int { Int.random(in: 0..<max(bound, 1), using: &generator) }
}

extension Bench {
  /// Kills the gateway; after a SIGTERM it may have ended by itself.
  fileprivate func crash(afterSIGTERM: Bool) throws {
    let gateway = try running()
    gateway.signal(SIGKILL)
    let code = gateway.waitForExit()
    guard code == -SIGKILL || (afterSIGTERM && code != nil) else {
      throw GatewayProcess.Failure(description: "ended with \(code ?? 0): \(gateway.log())")
    }
  }
}
