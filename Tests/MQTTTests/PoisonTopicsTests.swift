// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import MQTT

/// Which losses make a topic wait, and for how long.
@Suite struct PoisonTopicsTests {
  /// The topics and their clock, in seconds.
  private struct Story {
    var topics = PoisonTopics(durations: .seconds(10)...(.seconds(600)))
    var now = Moment(nanoseconds: 1_000_000_000)

    mutating func pass(_ seconds: Int) { now = now.advanced(by: .seconds(seconds)) }

    /// The peer drops the connection; returns the topic that is quarantined, and for how many
    /// seconds.
    mutating func drop(_ topics: String..., payload: String = "x", wasGood: Bool = true) -> String?
    {
      let quarantined = self.topics.connectionDropped(
        inFlight: topics.map { ($0, Array(payload.utf8)) },
        wasGood: wasGood,
        at: now
      )
      return quarantined.map { "\($0.topic) \(Int(now.duration(to: $0.until) / .seconds(1)))" }
    }

    mutating func answer(_ topic: String, payload: String = "x") {
      topics.answered(topic, Array(payload.utf8))
    }

    func isHeld(_ topic: String, payload: String = "x") -> Bool {
      topics.heldUntil(topic: topic, payload: Array(payload.utf8), at: now) != nil
    }
  }

  /// A story in which `poison` with the payload `x` is held back for ten seconds.
  private func quarantined() -> Story {
    var story = Story()
    let losses = (0..<3).map { _ in story.drop("poison") }
    #expect(losses == [nil, nil, "poison 10"])
    return story
  }

  @Test func `three losses alone in flight quarantine a topic, and only it`() {
    var story = Story()
    let first = story.drop("a", "poison", "b")
    #expect(first == nil)
    let alone = (0..<3).map { _ in story.drop("poison") }
    #expect(alone == [nil, nil, "poison 10"])
    #expect(story.isHeld("poison"))
    #expect(!story.isHeld("a"))
    #expect(story.topics.isProbing)
    #expect(story.topics.quarantined(at: story.now).map(\.topic) == ["poison"])
  }

  @Test func `a quarantine ends by itself, and nothing is held or shown any more`() {
    var story = quarantined()
    story.pass(9)
    #expect(story.isHeld("poison"))
    story.pass(1)
    #expect(!story.isHeld("poison"))
    #expect(story.topics.quarantined(at: story.now).isEmpty)
  }

  @Test func `after a quarantine one loss begins the next, twice as long, to ten minutes`() {
    var story = quarantined()
    var durations: [String?] = []
    for seconds in [10, 20, 40, 80, 160, 320, 600, 600] {
      story.pass(seconds)
      durations.append(story.drop("poison"))
    }
    #expect(durations == [20, 40, 80, 160, 320, 600, 600, 600].map { "poison \($0)" })
  }

  @Test func `an acknowledgement forgets it`() {
    var story = quarantined()
    story.pass(10)
    story.answer("poison")
    let losses = (0..<3).map { _ in story.drop("poison") }
    #expect(losses == [nil, nil, "poison 10"])
  }

  @Test func `ten minutes after its end it is forgotten`() {
    var story = quarantined()
    story.pass(10 + 599)
    let lost = story.drop("poison")
    #expect(lost == "poison 20")
    story.pass(20 + 600)
    let losses = (0..<3).map { _ in story.drop("poison") }
    #expect(losses == [nil, nil, "poison 10"])
  }

  @Test func `another payload is not held back, and one loss holds it back too`() {
    var story = quarantined()
    #expect(!story.isHeld("poison", payload: "y"))
    let lost = story.drop("poison", payload: "y")
    #expect(lost == "poison 20")
    #expect(story.isHeld("poison", payload: "y"))
    #expect(!story.isHeld("poison", payload: "z"))
  }

  @Test func `where three payloads in a row are dropped, the whole topic waits`() {
    var story = quarantined()
    _ = story.drop("poison", payload: "y")
    let lost = story.drop("poison", payload: "z")
    #expect(lost == "poison 40")
    #expect(story.isHeld("poison", payload: "anything"))
    story.pass(40)
    #expect(!story.isHeld("poison", payload: "anything"))
    // One that is accepted shows that the topic is not the cause.
    story.answer("poison", payload: "good")
    _ = story.drop("poison", payload: "y")
    #expect(!story.isHeld("poison", payload: "anything"))
  }

  @Test func `another payload that is accepted leaves the first one in quarantine`() {
    var story = quarantined()
    story.answer("poison", payload: "y")
    #expect(story.isHeld("poison"))
  }

  @Test func `an answer in between clears a topic's name`() {
    var story = Story()
    for _ in 0..<10 {
      let losses = [story.drop("a"), story.drop("a")]
      #expect(losses == [nil, nil])
      story.answer("a")
    }
    #expect(!story.topics.isProbing)
  }

  @Test func `a loss of another topic between does not save the poison`() {
    var story = Story()
    let losses = ["poison", "b", "poison", "poison"].map { story.drop($0) }
    #expect(losses == [nil, nil, nil, "poison 10"])
  }

  @Test func `a connection that was not good before is no sign, however often it is lost`() {
    var story = Story()
    for _ in 0..<10 {
      let quarantined = story.drop("a", wasGood: false)
      #expect(quarantined == nil)
    }
    #expect(story.topics.isSuspicious)
    let good = story.drop("a")
    #expect(good == "a 10")
  }

  @Test func `a connection that is lost with nothing in flight is the link's fault`() {
    var story = Story()
    for _ in 0..<10 {
      let losses = [story.drop("a"), story.drop("a"), story.drop()]
      #expect(losses == [nil, nil, nil])
    }
    #expect(!story.topics.isSuspicious)
  }

  @Test func `a quarantine ends at once if the next connection is lost without the message`() {
    var story = quarantined()
    _ = story.drop()
    #expect(!story.isHeld("poison"))
    // One that has lasted was good, whatever ends it.
    story = quarantined()
    story.topics.clear()
    _ = story.drop()
    #expect(story.isHeld("poison"))
  }

  @Test func `memory is bounded, whatever is lost`() {
    var story = Story()
    for number in 0..<5000 { for _ in 0..<3 { _ = story.drop("key/\(number)") } }
    for number in 0..<5000 { _ = story.drop("other/\(number)") }
    #expect(story.topics.rememberedCount <= 3 * PoisonTopics.mostTopics)
  }
}
