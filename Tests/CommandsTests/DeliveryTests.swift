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
    _ = delivery.report(1, 1, repetition: nil, property)
    _ = delivery.send(InFlightCommand(.of(40), message: 7, transitionTime: .zero))
    if isAcknowledged { _ = delivery.acknowledge(confirms: true, isAction: false) }
    return delivery
  }

  // MARK: - The broker

  @Test func `without confirmation an acknowledged value is what was sent last`() {
    var delivery = sent()
    #expect(delivery.acknowledge(confirms: false, isAction: false).text == "none")
    #expect(delivery.inFlight == nil)
    #expect(delivery.lastSent == 40)
    #expect(delivery.expected == 40)
  }

  @Test func `a momentary command leaves no value behind`() {
    var delivery = sent()
    _ = delivery.acknowledge(confirms: false, isAction: true)
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
    let report = delivery.report(40, 40, repetition: nil, property)
    #expect(report.verdict.text == "confirmed 40")
    #expect(report.isByHand == false)
    #expect(delivery.shows(40, property) == true)
  }

  @Test func `a report before the acknowledgement confirms with it`() {
    var delivery = sent()
    #expect(delivery.report(40, 40, repetition: nil, property).verdict.text == "none")
    #expect(delivery.acknowledge(confirms: true, isAction: false).text == "confirmed 40")
  }

  @Test func `a value on the way is interim, and takes back that the command's was shown`() {
    var delivery = sent()
    _ = delivery.report(40, 40, repetition: nil, property)
    #expect(delivery.report(20, 20, repetition: nil, property).isByHand == false)
    #expect(delivery.acknowledge(confirms: true, isAction: false).text == "none")
    #expect(delivery.awaitsConfirmation == true)
  }

  @Test func `a value off the way was set by hand, and ends the command`() {
    var delivery = sent(isAcknowledged: true)
    let report = delivery.report(90, 90, repetition: nil, property)
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
    let report = delivery.report(value, wire, repetition: repetition, property)
    #expect(report.verdict.text == verdict)
  }

  // MARK: - Replies

  @Test func `a device that accepts the value confirms it, and is arriving`() {
    var delivery = sent(isAcknowledged: true)
    #expect(delivery.accept(40, property).text == "confirmed 40")
    #expect(delivery.arriving == 40)
    #expect(delivery.expected == 40)
    #expect(delivery.report(20, 20, repetition: nil, property).isByHand == false)
    #expect(delivery.report(40, 40, repetition: nil, property).isByHand == false)
    #expect(delivery.arriving == nil)
  }

  @Test func `another value while the device is arriving was set by hand`() {
    var delivery = sent(isAcknowledged: true)
    _ = delivery.accept(40, property)
    #expect(delivery.report(90, 90, repetition: nil, property).isByHand == true)
    #expect(delivery.arriving == nil)
  }

  @Test func `a refusal before the acknowledgement fails the command with it`() {
    var delivery = sent()
    #expect(delivery.awaitsReply(to: 7) == true)
    #expect(delivery.awaitsReply(to: 8) == false)
    #expect(delivery.reply(problem: "busy").text == "none")
    let verdict = delivery.acknowledge(confirms: true, isAction: false)
    #expect(verdict.text == "failed 40: the device refused: busy")
  }

  // MARK: - Abandoned

  @Test func `an abandoned command stays in flight silently until it is acknowledged`() {
    var delivery = sent()
    #expect(delivery.abandon(as: .cancelled, reason: nil).text == "cancelled 40")
    #expect(delivery.isSending == true)
    #expect(delivery.expected == 1)
    #expect(delivery.abandon(as: .cancelled, reason: nil).text == "none")
    #expect(delivery.acknowledge(confirms: true, isAction: false).text == "none")
    #expect(delivery.inFlight == nil)
  }

  @Test func `a newer command replaces one that was not confirmed, whose value is interim then`() {
    var delivery = sent(isAcknowledged: true)
    let newer = InFlightCommand(.of(10, number: 2), message: 8, transitionTime: .zero)
    #expect(delivery.send(newer)?.value == 40)
    #expect(delivery.report(40, 40, repetition: nil, property).isByHand == false)
  }

  @Test func `a new definition forgets values that it does not have`() {
    var delivery = sent()
    _ = delivery.acknowledge(confirms: false, isAction: false)
    #expect(delivery.adopt(.of(.word("mode")), confirms: false).text == "none")
    #expect(delivery.expected == nil)
  }

  @Test func `a new definition forgets what the device accepted`() {
    var delivery = sent()
    _ = delivery.acknowledge(confirms: true, isAction: false)
    _ = delivery.accept(40, property)
    #expect(delivery.expected == 40)
    _ = delivery.adopt(.of(.word("mode")), confirms: true)
    #expect(delivery.expected == nil)
  }

  @Test func `a new definition ends a command that it does not allow, or nothing confirms`() {
    var foreign = sent()
    #expect(foreign.adopt(.of(.word("mode")), confirms: true).text.hasPrefix("superseded 40"))
    var unprovable = sent()
    _ = unprovable.acknowledge(confirms: true, isAction: false)
    let entry = Registry.Entry.of(property)
    #expect(unprovable.adopt(entry, confirms: true).text == "none")
    #expect(unprovable.adopt(entry, confirms: false).text.hasPrefix("superseded 40"))
  }
}
