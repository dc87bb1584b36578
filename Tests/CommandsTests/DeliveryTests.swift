// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Testing
import Values

@testable import Commands

@Suite struct DeliveryTests {
  private let property = Property.seen()

  /// A delivery whose device has reported 1, and to which 40 was sent as message 7.
  private func sent(isAcknowledged: Bool = false) -> Delivery {
    var delivery = Delivery()
    _ = delivery.report(1, 1, repetition: nil, property, at: .at(0))
    _ = delivery.send(.of(.of(40), message: 7), at: .at(0))
    if isAcknowledged { _ = delivery.acknowledge(confirms: true, isAction: false, at: .at(0)) }
    return delivery
  }

  // MARK: - The broker

  @Test func `without confirmation an acknowledged value is what was sent last`() {
    var delivery = Delivery()
    _ = delivery.send(.of(.of(40), message: 7, restTime: nil), at: .at(0))
    #expect(delivery.acknowledge(confirms: false, isAction: false, at: .at(0)).text == "none")
    #expect(delivery.inFlight == nil)
    #expect(delivery.lastSent == 40)
    #expect(delivery.expected == 40)
  }

  @Test func `a momentary command leaves no value behind`() {
    var delivery = sent()
    _ = delivery.acknowledge(confirms: false, isAction: true, at: .at(0))
    #expect(delivery.lastSent == nil)
  }

  @Test func `an acknowledged command awaits its confirmation`() {
    let delivery = sent(isAcknowledged: true)
    #expect(delivery.awaitsConfirmation == true)
    #expect(delivery.isSending == false)
  }

  @Test func `a refused command has failed`() {
    var delivery = sent()
    #expect(delivery.fail("no").text == "failed 40: no")
    #expect(delivery.expected == 1)
  }

  @Test func `a retry is the next attempt, and counts as one only if it was unconfirmed`() {
    var lost = sent()
    #expect(lost.retry(unconfirmed: false).text == "attempt 2 of 40")
    var late = sent(isAcknowledged: true)
    guard case .repeated(let command) = late.retry(unconfirmed: true) else {
      Issue.record("not repeated")
      return
    }
    #expect(command.retries == 1)
  }

  // MARK: - Reports

  @Test func `a report of the value confirms an acknowledged command`() {
    var delivery = sent(isAcknowledged: true)
    let report = delivery.report(40, 40, repetition: nil, property, at: .at(1000))
    #expect(report.verdict.text == "confirmed 40")
    #expect(report.isByHand == false)
    #expect(delivery.shows(40, property) == true)
  }

  @Test func `a report before the acknowledgement confirms with it`() {
    var delivery = sent()
    #expect(
      delivery.report(40, 40, repetition: nil, property, at: .at(1000)).verdict.text == "none"
    )
    #expect(
      delivery.acknowledge(confirms: true, isAction: false, at: .at(0)).text == "confirmed 40"
    )
  }

  @Test func `a value on the way is interim, and does not take back that the value was shown`() {
    var delivery = sent()
    _ = delivery.report(40, 40, repetition: nil, property, at: .at(1000))
    #expect(delivery.report(20, 20, repetition: nil, property, at: .at(1000)).isByHand == false)
    let verdict = delivery.acknowledge(confirms: true, isAction: false, at: .at(2000))
    #expect(verdict.text == "confirmed 40")
  }

  @Test func `the value before takes back that a word was shown, because a word has no way`() {
    let mode = Property.word("mode")
    var delivery = Delivery()
    _ = delivery.report(.text("off"), "off", repetition: nil, mode, at: .at(0))
    _ = delivery.send(.of(.of(.text("heat")), message: 7, restTime: nil), at: .at(0))
    for word in ["heat", "off"] {
      _ = delivery.report(.text(word), .string(word), repetition: nil, mode, at: .at(1000))
    }
    #expect(delivery.acknowledge(confirms: true, isAction: false, at: .at(0)).text == "none")
    #expect(delivery.awaitsConfirmation == true)
  }

  @Test func `a value off the way was set by hand, and ends the command`() {
    var delivery = sent(isAcknowledged: true)
    let report = delivery.report(90, 90, repetition: nil, property, at: .at(1000))
    #expect(report.verdict.text == "superseded 40: changed at the device")
    #expect(report.isByHand == true)
    #expect(delivery.expected == 90)
  }

  @Test(arguments: [
    (40, "confirmed 40"), (20, "none"), (90, "superseded 40: changed at the device"),
  ])
  func `a report may be about the attempt before a repetition`(reported: Int, verdict: String) {
    var delivery = sent()
    guard case .repeated(let repetition) = delivery.retry(unconfirmed: false) else {
      Issue.record("not repeated")
      return
    }
    let wire = JSONValue.integer(Int64(reported))
    let value = Value.number(Double(reported))
    let report = delivery.report(value, wire, repetition: repetition, property, at: .at(1000))
    #expect(report.verdict.text == verdict)
  }

  // MARK: - Replies

  @Test func `a device that accepts the value confirms it, and travels`() {
    var delivery = sent(isAcknowledged: true)
    #expect(delivery.accept(40, property).text == "confirmed 40")
    #expect(delivery.expected == 40)
    #expect(delivery.restsAt == nil)
    #expect(delivery.report(20, 20, repetition: nil, property, at: .at(1000)).isByHand == false)
    #expect(delivery.restsAt == .at(6000))
    #expect(delivery.report(40, 40, repetition: nil, property, at: .at(2000)).isByHand == false)
    #expect(delivery.restsAt == .at(7000))
    #expect(delivery.expected == 40)
  }

  @Test func `another value while the device travels was set by hand`() {
    var delivery = sent(isAcknowledged: true)
    _ = delivery.accept(40, property)
    #expect(delivery.report(90, 90, repetition: nil, property, at: .at(1000)).isByHand == true)
    #expect(delivery.travel.isOpen == false)
  }

  @Test func `a report that moves the actual value only keeps the target, at rest too`() {
    var delivery = sent(isAcknowledged: true)
    _ = delivery.report(40, 40, repetition: nil, property, at: .at(0))
    for number in [90, 0] {
      let (value, wire) = (Value.number(Double(number)), JSONValue.integer(Int64(number)))
      let report = delivery.report(
        value,
        wire,
        repetition: nil,
        movesActualOnly: true,
        property,
        at: .at(1000)
      )
      #expect(report.isByHand == false)
      #expect(delivery.actual == value)
      #expect(delivery.expected == 40)
      delivery.rest(keepsTarget: true)
      #expect(delivery.expected == 40)
      #expect(delivery.restsAt == nil)
    }
    #expect(delivery.report(5, 5, repetition: nil, property, at: .at(1000)).isByHand == true)
    #expect(delivery.expected == 5)
  }

  @Test func `a refusal before the acknowledgement fails the command with it`() {
    var delivery = sent()
    #expect(delivery.awaitsReply(to: 7) == true)
    #expect(delivery.awaitsReply(to: 8) == false)
    #expect(delivery.reply(problem: "busy").text == "none")
    let verdict = delivery.acknowledge(confirms: true, isAction: false, at: .at(0))
    #expect(verdict.text == "failed 40: the device refused: busy")
  }

  // MARK: - Abandoned

  @Test func `an abandoned command stays in flight silently until it is acknowledged`() {
    var delivery = sent()
    #expect(delivery.abandon(as: .cancelled, reason: nil).text == "cancelled 40")
    #expect(delivery.isSending == true)
    #expect(delivery.expected == 1)
    #expect(delivery.abandon(as: .cancelled, reason: nil).text == "none")
    #expect(delivery.acknowledge(confirms: true, isAction: false, at: .at(0)).text == "none")
    #expect(delivery.inFlight == nil)
  }

  @Test func `a newer command replaces one that was not confirmed, whose value is interim`() {
    var delivery = sent(isAcknowledged: true)
    #expect(delivery.send(.of(.of(10, number: 2), message: 8), at: .at(0))?.value == 40)
    #expect(delivery.report(40, 40, repetition: nil, property, at: .at(1000)).isByHand == false)
  }

  @Test func `a new definition forgets values that it does not have`() {
    var delivery = sent()
    _ = delivery.acknowledge(confirms: false, isAction: false, at: .at(0))
    #expect(delivery.adopt(.of(.word("mode")), confirms: false, travels: true).text == "none")
    #expect(delivery.expected == nil)
  }

  @Test func `a new definition forgets what the device accepted`() {
    var delivery = sent()
    _ = delivery.acknowledge(confirms: true, isAction: false, at: .at(0))
    _ = delivery.accept(40, property)
    #expect(delivery.expected == 40)
    _ = delivery.adopt(.of(.word("mode")), confirms: true, travels: true)
    #expect(delivery.expected == nil)
  }

  @Test func `a new definition ends a command that it does not allow, or nothing confirms`() {
    var foreign = sent()
    #expect(
      foreign.adopt(.of(.word("mode")), confirms: true, travels: false).text.hasPrefix(
        "superseded 40"
      )
    )
    var unprovable = sent()
    _ = unprovable.acknowledge(confirms: true, isAction: false, at: .at(0))
    let entry = Registry.Entry.of(property)
    #expect(unprovable.adopt(entry, confirms: true, travels: true).text == "none")
    #expect(unprovable.adopt(entry, confirms: false, travels: true).text.hasPrefix("superseded 40"))
  }
}
