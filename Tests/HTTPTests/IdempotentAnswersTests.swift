// Settle
// SPDX-License-Identifier: Apache-2.0

import HTTP
import LastOut
import Testing

@Suite struct IdempotentAnswersTests {
  private let start = Moment(nanoseconds: 1_000_000_000)
  private var answers = IdempotentAnswers<String>(capacity: 4096)

  private func later(_ seconds: Double) -> Moment { start.advanced(by: .seconds(seconds)) }

  /// The verdict in a word; the answer itself if there is one.
  private mutating func begin(_ key: String, _ fingerprint: Int = 1, at now: Moment) -> String {
    switch answers.begin(key, fingerprint: fingerprint, at: now) {
    case .execute: "execute"
    case .unanswered: "unanswered"
    case .answered(let answer): answer
    case .reused: "reused"
    case .full: "full"
    }
  }

  private mutating func record(_ answer: String, _ key: String, at now: Moment) {
    answers.record(answer, size: answer.utf8.count, of: key, at: now)
  }

  @Test mutating func `a repeated request is answered as before until a minute after its answer`() {
    #expect(begin("a", at: start) == "execute")
    #expect(begin("a", at: start) == "unanswered")
    record("yes", "a", at: later(5))
    #expect(begin("a", at: later(5)) == "yes")
    #expect(begin("a", at: later(64.999)) == "yes")
    #expect(begin("a", at: later(65)) == "execute")
  }

  @Test mutating func `a key of another request is reused, answered or not`() {
    _ = begin("a", 1, at: start)
    #expect(begin("a", 2, at: start) == "reused")
    record("yes", "a", at: start)
    #expect(begin("a", 2, at: start) == "reused")
    #expect(begin("a", 1, at: start) == "yes")
    #expect(begin("b", 2, at: start) == "execute")
  }

  @Test mutating func `a forgotten request is executed again`() {
    _ = begin("a", at: start)
    answers.forget("a")
    #expect(answers.size == 0)
    #expect(begin("a", at: start) == "execute")
  }

  @Test mutating func `an answer that nobody has asked for is passed over`() {
    record("yes", "a", at: start)
    #expect(answers.size == 0)
    _ = begin("a", at: start)
    record("yes", "a", at: start)
    record("no", "a", at: start)
    #expect(begin("a", at: start) == "yes")
  }

  @Test mutating func `beyond the capacity the oldest answers are forgotten`() {
    for number in 0..<100 {
      #expect(begin("\(number)", at: start) == "execute")
      record("answer \(number)", "\(number)", at: start)
      #expect(answers.size <= 4096)
    }
    #expect(begin("0", at: start) == "execute")
    #expect(begin("99", at: start) == "answer 99")
  }

  @Test mutating func `an answer above the capacity is not kept`() {
    _ = begin("a", at: start)
    record(String(repeating: "x", count: 5000), "a", at: start)
    #expect(answers.size == 0)
    #expect(begin("a", at: start) == "execute")
  }

  @Test mutating func `requests that wait for answers are not forgotten, but further ones refused`()
  {
    var accepted = 0
    while begin("\(accepted)", at: start) == "execute" { accepted += 1 }
    #expect(accepted > 4)
    #expect(begin("more", at: later(600)) == "full")
    #expect(begin("0", at: later(600)) == "unanswered")
    record("yes", "0", at: later(600))
    #expect(begin("more", at: later(600)) == "execute")
  }

  @Test(
    arguments: [
      ([], nil, nil), ([("Idempotency-Key", "a")], "a", nil),
      ([("idempotency-key", "a"), ("settle-not-after", "17")], "a", 17),
    ] as [([(String, String)], String?, Int64?)]
  )
  func `conditions are read from the headers`(
    headers: [(String, String)],
    key: String?,
    time: Int64?
  ) throws {
    let request = try request(headers)
    let conditions = try ChangeConditions(request)
    #expect(conditions.idempotencyKey == key)
    #expect(conditions.notAfter == time)
    #expect(ChangeConditions.areStated(in: request) == !headers.isEmpty)
  }

  @Test(arguments: [
    [("Idempotency-Key", "")], [("Idempotency-Key", String(repeating: "x", count: 129))],
    [("Idempotency-Key", "a"), ("idempotency-key", "b")], [("Settle-Not-After", "soon")],
    [("Settle-Not-After", "-1")], [("Settle-Not-After", "")],
    [("Settle-Not-After", "1"), ("Settle-Not-After", "2")],
  ])
  func `conditions that are not valid are refused`(headers: [(String, String)]) throws {
    let request = try request(headers)
    #expect(ChangeConditions.areStated(in: request))
    #expect(throws: Problem.self) { _ = try ChangeConditions(request) }
  }

  private func request(_ headers: [(String, String)]) throws -> HTTPRequest {
    HTTPRequest(
      method: "POST",
      target: try RequestTarget("/v1/changes"),
      headers: headers.map { HTTPHeader($0.0, $0.1) }
    )
  }
}
