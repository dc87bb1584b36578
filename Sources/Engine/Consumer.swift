// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import LastOut
import Operations

/// Reads a stream in order, without a gap: a consumer of JetStream that is lost with its
/// connection.
///
/// A consumer may vanish when servers elect a leader, and says nothing then. So each of its
/// messages is counted, and one that follows a stream gives a sign of life each second.
final class Consumer {
  enum Start: Hashable {
    /// Every message from a sequence number on.
    case from(UInt64)
    /// What is stored from now on.
    case new
  }

  /// How long it may be silent; one that reads to a known end sends without a pause.
  private let patience: Duration

  /// Its name at the engine, which each of its messages has.
  let name: String
  /// Where its signs of life arrive.
  let subject: String
  private let api: StreamAPI
  private let stream: String
  private let onItem: (StreamAPI.Stored) -> Void
  private let onLost: () -> Void
  private var timer: LoopTimer?
  private var count = 0
  private var isEnded = false

  /// - Parameters:
  ///   - start: Where it begins.
  ///   - filter: The subject, or a pattern of subjects.
  ///   - stream: The stream.
  ///   - api: Where it is asked for.
  ///   - name: Its name at the engine.
  ///   - subject: Where its messages are sent.
  ///   - loop: Its timer's loop.
  ///   - onItem: Receives each message.
  ///   - onLost: Called once, when messages may have been missed: another one is needed.
  init(
    _ start: Start,
    of filter: String,
    in stream: String,
    _ api: StreamAPI,
    named name: String,
    to subject: String,
    loop: EventLoop,
    onItem: @escaping (StreamAPI.Stored) -> Void,
    onLost: @escaping () -> Void
  ) {
    self.name = name
    self.subject = subject
    self.api = api
    self.stream = stream
    self.onItem = onItem
    self.onLost = onLost
    patience = start == .new ? .milliseconds(2500) : .milliseconds(700)
    timer = try? loop.makeTimer(named: "a reader of the cluster's engine") { [unowned self] in
      lose()
    }
    var configuration: [JSONValue.Member] = [
      .init("name", .string(name)), .init("deliver_subject", .string(subject)),
      .init("ack_policy", "none"),
      .init("replay_policy", "instant"),
      .init("mem_storage", true), .init("num_replicas", 1),
      .init("inactive_threshold", 5_000_000_000), .init("filter_subject", .string(filter)),
    ]
    switch start {
    case .from(let first):
      // One that reads to a known end needs no sign of life.
      configuration.append(.init("deliver_policy", "by_start_sequence"))
      configuration.append(.init("opt_start_seq", .integer(Int64(clamping: first))))
    case .new:
      configuration.append(.init("deliver_policy", "new"))
      configuration.append(.init("idle_heartbeat", 1_000_000_000))
    }
    heard()
    api.call(
      "CONSUMER.CREATE.\(stream).\(name)",
      .object(["stream_name": .string(stream), "config": .object(configuration)])
    ) { [weak self] in self?.made($0) }
  }

  /// Ends it; nothing is reported afterwards.
  func end() {
    guard !isEnded else { return }
    isEnded = true
    timer?.arm(at: nil)
    api.call("CONSUMER.DELETE.\(stream).\(name)", .object([:])) { _ in }
  }

  private func made(_ result: Result<JSONValue, StreamAPI.Problem>) {
    if case .failure = result { lose() }
  }

  /// Takes one of its messages.
  func receive(_ message: NATSConnection.Message) {
    guard !isEnded else { return }
    heard()
    if message.status != nil {
      // A sign of life, with the number of the last message.
      if let last = message.lastConsumer, last != UInt64(count) { lose() }
      return
    }
    guard let facts = Facts(message.reply), facts.consumer == UInt64(count + 1) else {
      return lose()
    }
    count += 1
    onItem(
      StreamAPI.Stored(
        subject: message.subject,
        sequence: facts.stream,
        storedAt: facts.storedAt,
        bytes: message.bytes
      )
    )
  }

  /// What `$JS.ACK.<stream>.<consumer>.<delivered>.<stream>.<consumer>.<time>.<pending>` says;
  /// later servers put a domain and an account first.
  struct Facts {
    var name: Substring
    var stream: UInt64
    var consumer: UInt64
    var storedAt: Int64

    init?(_ reply: String?) {
      let parts = (reply ?? "").utf8.split(
        separator: UInt8(ascii: "."),
        omittingEmptySubsequences: false
      ).map { Substring($0) }
      let first = parts.count == 9 ? 2 : 4
      guard parts.count >= 9, parts.count > first + 5, let stream = UInt64(parts[first + 3]),
        let consumer = UInt64(parts[first + 4]), let storedAt = Int64(parts[first + 5])
      else { return nil }
      name = parts[first + 1]
      self.stream = stream
      self.consumer = consumer
      self.storedAt = storedAt
    }
  }

  private func heard() { timer?.arm(at: EventLoop.now().advanced(by: patience)) }

  private func lose() {
    guard !isEnded else { return }
    end()
    onLost()
  }
}
