// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import JSON
import LastOut
import Operations

/// JetStream's requests and answers, as its documentation of the wire has them.
///
/// Source: https://docs.nats.io/reference/reference-protocols/nats_api_reference
struct StreamAPI {
  /// An answer that says why something was not done.
  struct Problem: Error, Hashable {
    /// The number of the kind of problem, as in the server's `errors.json`.
    let code: Int
    let text: String

    static let noAnswer = Problem(code: 0, text: "the engine does not answer")
    /// No server of those that are connected has JetStream, or its leader is being elected.
    static let noResponders = Problem(code: 503, text: "nobody answers for JetStream")
    static let wrongSequence = 10071
    static let noMessage = 10037
  }

  let requests: Requests

  /// Sends a request to the API; `name` follows `$JS.API.`.
  func call(
    _ name: String,
    _ body: JSONValue,
    _ done: @escaping (Result<JSONValue, Problem>) -> Void
  ) {
    requests.send(JSONWriter.bytes(body), to: "$JS.API.\(name)") { done(Self.answer($0)) }
  }

  /// Appends a message to a stream if the last one of its subject is still the one given.
  func publish(
    _ bytes: [UInt8],
    to subject: String,
    after predecessor: Predecessor,
    _ done: @escaping (WriteOutcome) -> Void
  ) {
    let condition = NATSConnection.Condition(
      lastSequence: predecessor.revision,
      // No two messages follow the same one.
      id: "\(subject)/\(predecessor.count)"
    )
    requests.send(bytes, to: subject, condition: condition) { message in
      switch Self.answer(message) {
      case .success(let json) where json["duplicate"] == true: done(.conflict)
      case .success(let json):
        if case .integer(let sequence)? = json["seq"] {
          done(.stored(revision: UInt64(bitPattern: sequence)))
        } else {
          done(.unknown)
        }
      case .failure(let problem):
        done(problem.code == Problem.wrongSequence ? .conflict : .unknown)
      }
    }
  }

  /// A message of a stream.
  struct Stored {
    var subject: String
    var sequence: UInt64
    /// In nanoseconds by the engine's clock.
    var storedAt: Int64
    var bytes: [UInt8]
  }

  /// The last message of a subject, as the stream's leader has it; `nil` if there is none.
  func last(
    of subject: String,
    in stream: String,
    _ done: @escaping (Result<Stored?, Problem>) -> Void
  ) {
    message(["last_by_subj": .string(subject)], in: stream, done)
  }

  /// The first message from a sequence number on whose subject matches a filter, as the stream's
  /// leader has it; `nil` if there is none.
  func next(
    of filter: String,
    from sequence: UInt64,
    in stream: String,
    _ done: @escaping (Result<Stored?, Problem>) -> Void
  ) {
    message(
      ["seq": .integer(Int64(clamping: sequence)), "next_by_subj": .string(filter)],
      in: stream,
      done
    )
  }

  /// The message that a query names; `nil` if there is none.
  private func message(
    _ query: KeyValuePairs<String, JSONValue>,
    in stream: String,
    _ done: @escaping (Result<Stored?, Problem>) -> Void
  ) {
    call("STREAM.MSG.GET.\(stream)", .object(query)) { result in
      switch result {
      case .failure(let problem) where problem.code == Problem.noMessage: done(.success(nil))
      case .failure(let problem): done(.failure(problem))
      case .success(let json):
        guard let message = json["message"], case .integer(let sequence)? = message["seq"],
          let subject = message["subject"]?.string,
          let storedAt = message["time"]?.string.flatMap(EngineTime.nanoseconds),
          let bytes = Base64.decoded(message["data"]?.string ?? "")
        else { return done(.failure(.noAnswer)) }
        let stored = Stored(
          subject: subject,
          sequence: UInt64(bitPattern: sequence),
          storedAt: storedAt,
          bytes: bytes
        )
        done(.success(stored))
      }
    }
  }

  private static func answer(_ message: NATSConnection.Message?) -> Result<JSONValue, Problem> {
    guard let message else { return .failure(.noAnswer) }
    if message.status == "503" { return .failure(.noResponders) }
    guard let json = try? JSONParser.parse(message.bytes.span) else { return .failure(.noAnswer) }
    guard let error = json["error"] else { return .success(json) }
    var code = 0
    if case .integer(let number)? = error["err_code"] { code = Int(number) }
    return .failure(Problem(code: code, text: error["description"]?.string ?? "an error"))
  }
}

/// The coding in which the engine's answers have bytes (RFC 4648, section 4).
enum Base64 {
  /// The bytes of a text; `nil` for anything else.
  static func decoded(_ text: String) -> [UInt8]? {
    var result: [UInt8] = []
    var (bits, count): (UInt32, Int) = (0, 0)
    var isPadded = false
    for byte in text.utf8 {
      if byte == UInt8(ascii: "=") {
        isPadded = true
        continue
      }
      guard !isPadded, let value = value(of: byte) else { return nil }
      bits = bits << 6 | UInt32(value)
      count += 6
      guard count >= 8 else { continue }
      count -= 8
      result.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
    }
    return result
  }

  private static func value(of byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}

/// The times in the engine's answers, such as `2026-11-25T09:56:13.511620012Z`.
enum EngineTime {
  /// Nanoseconds since 1970; `nil` for anything else.
  ///
  /// Source of the calendar: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
  /// days_from_civil.
  static func nanoseconds(_ text: String) -> Int64? {
    let bytes = Array(text.utf8)
    guard bytes.count >= 20, bytes.last == UInt8(ascii: "Z"), let year = number(bytes[0..<4]),
      let month = number(bytes[5..<7]), let day = number(bytes[8..<10]),
      let hour = number(bytes[11..<13]), let minute = number(bytes[14..<16]),
      let second = number(bytes[17..<19]), (1...12).contains(month)
    else { return nil }
    var fraction: Int64 = 0
    let digits = bytes[19..<bytes.count - 1]
    if digits.first == UInt8(ascii: ".") {
      guard digits.count <= 10, let read = number(digits.dropFirst()) else { return nil }
      fraction = read
      for _ in digits.count..<10 { fraction *= 10 }
    } else if !digits.isEmpty {
      return nil
    }
    let adjusted = month <= 2 ? year - 1 : year
    let era = adjusted / 400
    let yearOfEra = adjusted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    let days = era * 146_097 + dayOfEra - 719_468
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000_000 + fraction
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    guard !digits.isEmpty else { return nil }
    var result: Int64 = 0
    for digit in digits {
      guard (0x30...0x39).contains(digit) else { return nil }
      result = result * 10 + Int64(digit - 0x30)
    }
    return result
  }
}

/// Requests to the engine and to other members, each with one answer or none.
final class Requests {
  private struct Pending {
    let deadline: Moment
    let done: (NATSConnection.Message?) -> Void
  }

  private let connection: NATSConnection
  /// Answers arrive on subjects below it.
  private let inbox: String
  private let patience: Duration
  private var pending: [UInt64: Pending] = [:]
  private var count: UInt64 = 0
  private var timer: LoopTimer?
  /// When the timer fires; answers that come in time leave it as it is.
  private var alarm: Moment?

  init(
    _ connection: NATSConnection,
    inbox: String,
    patience: Duration,
    loop: EventLoop
  ) throws(OperationsError) {
    self.connection = connection
    self.inbox = inbox
    self.patience = patience
    timer = try loop.makeTimer(named: "answers of the cluster's engine") { [unowned self] in
      expire(at: EventLoop.now())
    }
  }

  /// Sends a request; `done` is called once: with the answer, or with `nil` when none has come in
  /// time.
  func send(
    _ bytes: [UInt8],
    to subject: String,
    condition: NATSConnection.Condition? = nil,
    _ done: @escaping (NATSConnection.Message?) -> Void
  ) {
    count += 1
    let number = count
    // Without a connection the answer is known: there will be none. Callers expect it later.
    let reply = "\(inbox).\(number)"
    let isSent = connection.publish(bytes, to: subject, reply: reply, condition: condition)
    let now = EventLoop.now()
    let deadline = isSent ? now.advanced(by: patience) : now
    pending[number] = Pending(deadline: deadline, done: done)
    arm(at: deadline)
  }

  /// Takes a message if it is an answer.
  func receive(_ message: NATSConnection.Message) -> Bool {
    guard message.subject.hasPrefix(inbox),
      let number = UInt64(message.subject.dropFirst(inbox.count + 1))
    else { return false }
    let waiting = pending.removeValue(forKey: number)
    waiting?.done(message)
    return true
  }

  private func expire(at now: Moment) {
    alarm = nil
    for (number, waiting) in pending.sorted(by: { $0.key < $1.key }) where waiting.deadline <= now {
      pending[number] = nil
      waiting.done(nil)
    }
    if let next = pending.values.map(\.deadline).min() { arm(at: next) }
  }

  private func arm(at deadline: Moment) {
    if let alarm, alarm <= deadline { return }
    alarm = deadline
    timer?.arm(at: deadline)
  }
}
