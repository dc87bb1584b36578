// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import Commands
import Devices
import Durability
import Journal
import JSON
import LastOut
import Operations
import PrivateBroker
import Testing

@testable import Gateway

/// What the journal's part in the gateway decides without a journal.
@Suite struct PureJournalTests {
  private static func event(
    _ key: Int32,
    _ number: UInt64,
    _ phase: Phase = .accepted,
    value: Value = .number(40),
    origin: ChangeOrigin? = nil,
    options: [JSONValue.Member]? = nil
  ) -> CommandEvent {
    CommandEvent(
      key: KeyIndex(key),
      phase: phase,
      value: value,
      collapsed: 0,
      number: number,
      acceptedAt: Moment(nanoseconds: 0),
      at: Moment(nanoseconds: 0),
      attempt: 1,
      reason: nil,
      origin: origin,
      isFinal: false,
      options: options
    )
  }

  @Test func `events are given out with their commit, in the order in which they came`() {
    var held = HeldEvents()
    held.hold(Self.event(0, 1), until: 1)
    held.hold(Self.event(1, 2), until: 2)
    held.hold(Self.event(0, 1, .sending))
    held.hold(Self.event(2, 3), until: 3)
    #expect(held.take(through: 0).isEmpty)
    #expect(held.take(through: 2).map(\.number) == [1, 2, 1])
    #expect(held.count == 1)
    #expect(!held.holds(KeyIndex(0)))
    #expect(held.holds(KeyIndex(2)))
    #expect(held.take(through: 9).map(\.number) == [3])
    #expect(held.count == 0)
  }

  @Test func `what follows a second value of its key waits for that one`() {
    var held = HeldEvents()
    held.hold(Self.event(0, 1), until: 1)
    held.hold(Self.event(0, 2), until: 2)
    held.hold(Self.event(0, 1, .superseded))
    #expect(held.take(through: 1).map(\.phase) == [.accepted])
    #expect(held.holds(KeyIndex(0)))
    #expect(held.take(through: 2).map(\.phase) == [.accepted, .superseded])
  }

  @Test func `one key's events can be taken from among the others`() {
    var held = HeldEvents()
    for number in 1...200 as ClosedRange<UInt64> {
      held.hold(Self.event(Int32(number % 2), number), until: number)
    }
    #expect(held.take(KeyIndex(0)).map(\.number) == Array(stride(from: 2, through: 200, by: 2)))
    #expect(held.take(KeyIndex(0)).isEmpty)
    held.hold(Self.event(0, 201), until: 201)
    #expect(held.take(through: 3).map(\.number) == [1, 3])
    #expect(held.take(KeyIndex(0)).map(\.number) == [201])
    #expect(held.count == 98)
    #expect(held.take(through: 300).map(\.number) == Array(stride(from: 5, through: 199, by: 2)))
  }

  @Test func `places that were emptied are used again, however long one key waits`() {
    var held = HeldEvents()
    held.hold(Self.event(0, 1), until: 1)
    for number in 2..<10_000 as Range<UInt64> {
      held.hold(Self.event(1, number), until: number)
      #expect(held.take(KeyIndex(1)).count == 1)
      guard held.count == 1 else { break }
    }
    #expect(held.capacityInUse < 200)
    #expect(held.take(through: 1).map(\.number) == [1])
  }

  @Test(arguments: [true, false])
  func `only an urgent value leaves without its commit, after a quarter second`(isUrgent: Bool)
    throws
  {
    let folder = try TemporaryFolder.make("settle-link")
    defer { TemporaryFolder.remove(folder) }
    let link = try JournalLink(
      path: folder + "/journal.db",
      settings: .init(),
      keys: 1,
      loop: EventLoop()
    )
    let start = EventLoop.now()
    let key = KeyIndex(0)
    let number = link.journalKey(key, named: "a/b")
    let expiresAt = start.advanced(by: .seconds(60))
    link.journal.keptValue = { _, _ in
      JournalledValue(.number(1), id: "x", origin: nil, options: nil)
    }
    _ = link.journal.accept(number, at: start, expiresAt: expiresAt, isUrgent: false)
    // The commit is in progress, and its end is not taken.
    link.journal.advance(to: start)
    let sequence = link.journal.accept(number, at: start, expiresAt: expiresAt, isUrgent: false)
    link.bind(key, number: 2, sequence: sequence, isUrgent: isUrgent)
    #expect(link.journal.holdsOlder(number, than: sequence, at: start))
    #expect(link.withhold(key, at: start))
    #expect(!link.withhold(key, at: start))
    #expect(link.takeReleased(at: start) { _ in "a/b" } == [])
    let later = start.advanced(by: JournalLink.patience)
    #expect((link.nextDeadline == later) == isUrgent)
    #expect(link.takeReleased(at: later) { _ in "a/b" } == (isUrgent ? [key] : []))
    #expect(link.withheld == (isUrgent ? [] : [key]))
  }

  @Test func `of the changes of a commit only what is newest then is asked for`() throws {
    let folder = try TemporaryFolder.make("settle-link")
    defer { TemporaryFolder.remove(folder) }
    let path = folder + "/journal.db"
    let link = try JournalLink(path: path, settings: .init(), keys: 2, loop: EventLoop())
    let now = EventLoop.now()
    var asked: [UInt64] = []
    link.journal.keptValue = { [unowned link] key, sequence in
      let command = link.command(key, sequence)
      asked.append(command.number)
      let origin = command.origin
      return JournalledValue(command.value, id: "x", origin: origin, options: command.options)
    }
    for number in 1...3 as ClosedRange<UInt64> {
      let event = Self.event(1, number, value: .number(Double(number)))
      _ = link.accept(
        event,
        .number(Double(number)),
        named: "a/b",
        expiresAt: now.advanced(by: .seconds(60)),
        isUrgent: false
      )
      if number > 1 {
        let isDue = link.ended(
          KeyIndex(1),
          named: "a/b",
          number: number - 1,
          at: now,
          promptly: true
        )
        #expect(!isDue)
      }
    }
    link.advance(to: now)
    #expect(asked == [3])
  }

  @Test func `a command that left before it was written is written as it was`() throws {
    let folder = try TemporaryFolder.make("settle-link")
    defer { TemporaryFolder.remove(folder) }
    let path = folder + "/journal.db"
    let link = try JournalLink(path: path, settings: .init(), keys: 1, loop: EventLoop())
    let now = EventLoop.now()
    let sequence = link.accept(
      Self.event(0, 7, value: .text("heat")),
      .text("heat"),
      named: "a/b",
      expiresAt: now.advanced(by: .seconds(60)),
      isUrgent: false
    )
    link.left(KeyIndex(0), named: "a/b", number: 7)
    let key = link.journalKey(KeyIndex(0), named: "a/b")
    let command = link.command(key, sequence)
    #expect(command.value == .text("heat"))
    #expect(command.number == 7)
  }

  @Test(
    arguments: [
      .number(21.5), .number(1e300), .boolean(true), .text("heat \"now\" \u{1F525}"),
    ] as [Value]
  )
  func `a journalled value is read as it was written`(value: Value) throws {
    let origin = ChangeOrigin(
      id: .integer(5),
      source: "panel",
      responseTopic: "answers/1",
      correlationData: [0, 15, 255]
    )
    let options = [JSONValue.Member("transition", .number(0.5))]
    let event = Self.event(0, 1, value: value, origin: origin, options: options)
    let read = try #require(JournalledValue(JournalledValue(value, id: 5, event: event).bytes))
    #expect(read.value == value.json)
    #expect(read.id == 5)
    #expect(read.source == "panel")
    #expect(read.options.map(\.name) == ["transition"])
    #expect(read.origin.responseTopic == "answers/1")
    #expect(read.origin.correlationData == [0, 15, 255])
    #expect(read.origin.replyTo == 0)
  }

  @Test func `a plain change by MQTT is from MQTT after a restart too`() throws {
    let event = Self.event(0, 1)
    let read = try #require(
      JournalledValue(JournalledValue(.number(40), id: "x", event: event).bytes)
    )
    #expect(read.source == "mqtt")
    #expect(read.options.isEmpty)
    #expect(read.correlationData == nil)
  }

  @Test(arguments: ["", "{", "[1]", #"{"value":1}"#, #"{"id":"x"}"#])
  func `bytes that are no journalled value are not read`(text: String) {
    #expect(JournalledValue(Array(text.utf8)) == nil)
  }
}

extension HeldEvents {
  /// Everything that waits for values up to `sequence`.
  fileprivate mutating func take(through sequence: UInt64) -> [CommandEvent] {
    var events: [CommandEvent] = []
    while let held = takeNext(through: sequence) { events.append(held.event) }
    return events
  }
}
