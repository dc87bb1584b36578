// Settle
// SPDX-License-Identifier: Apache-2.0

import Values
import Devices
import JSON
import LastOut
import Testing

@testable import Commands

@Suite struct DeliveryTableTests {
  private let confirmation = Confirmation(within: .seconds(5), retries: 1)

  /// A table in which 40 was sent to the first key at 0 ms and acknowledged at 100 ms.
  private func acknowledged(transitionTime: Duration = .zero) -> DeliveryTable {
    var table = DeliveryTable(keys: 2, devices: 1)
    let flight = InFlightCommand.of(.of(40), message: 1, transitionTime: transitionTime)
    _ = table.update(.first) { $0.send(flight, at: .at(0)) }
    _ = table.acknowledge(.first, confirmation: confirmation, isAction: false, at: .at(100))
    return table
  }

  private func timeOut(
    _ table: inout DeliveryTable,
    hasNewer: Bool = false,
    mayRetry: Bool = true
  ) -> String {
    table.timeOut(.first, of: 0, confirmation, hasNewer: hasNewer, mayRetry: mayRetry).text
  }

  @Test func `a confirmation is due after its time and that of the transition`() {
    #expect(acknowledged().nextOverdue == .at(5100))
    #expect(acknowledged(transitionTime: .seconds(3)).nextOverdue == .at(8100))
  }

  @Test func `a deadline ends with the command that had it`() {
    var table = acknowledged()
    #expect(table.update(.first) { $0.abandon(as: .cancelled, reason: nil) }.text == "cancelled 40")
    #expect(table.nextOverdue == nil)
  }

  @Test func `the deadline of a confirmed command is when its key is at rest`() {
    var table = acknowledged()
    let property = Property.seen()
    func report(_ value: Value, _ wire: JSONValue, at milliseconds: Int) {
      _ = table.update(.first) {
        $0.report(value, wire, repetition: nil, property, at: .at(milliseconds))
      }
    }
    report(40, 40, at: 2000)
    #expect(table.nextOverdue == .at(7000))
    report(90, 90, at: 3000)
    #expect(table.nextOverdue == .at(7000))
    report(60, 60, at: 3500)
    #expect(table.nextOverdue == .at(8500))
    table.update(.first) { $0.rest(keepsTarget: false) }
    #expect(table.nextOverdue == nil)
  }

  @Test func `an overdue key is reported once`() {
    var table = acknowledged()
    #expect(table.popOverdue(at: .at(5099)) == nil)
    #expect(table.popOverdue(at: .at(5100)) == .first)
    #expect(table.popOverdue(at: .at(5100)) == nil)
  }

  @Test func `an overdue command is repeated as often as its property says`() {
    var table = acknowledged()
    #expect(timeOut(&table) == "attempt 2 of 40")
    let again = InFlightCommand.of(Command.of(40).repeated(unconfirmed: true), message: 1)
    _ = table.update(.first) { $0.send(again, at: .at(0)) }
    _ = table.acknowledge(.first, confirmation: confirmation, isAction: false, at: .at(5200))
    #expect(timeOut(&table) == "failed 40: not confirmed within 5s")
  }

  @Test func `with a backoff each attempt waits longer, an hour at most`() {
    let patient = Confirmation(within: .seconds(5), retries: 100, backoff: 2)
    var table = DeliveryTable(keys: 2, devices: 1)
    var waits: [Duration] = []
    var command = Command.of(40)
    for _ in 0..<13 {
      _ = table.update(.first) { $0.send(InFlightCommand.of(command, message: 1), at: .at(0)) }
      _ = table.acknowledge(.first, confirmation: patient, isAction: false, at: .at(0))
      waits.append(Moment.at(0).duration(to: table.nextOverdue ?? .at(0)))
      _ = table.popOverdue(at: table.nextOverdue ?? .at(0))
      let verdict = table.timeOut(.first, of: 0, patient, hasNewer: false, mayRetry: true)
      guard case .repeated(let again) = verdict else { break }
      command = again
    }
    let seconds = waits.map { Int($0.components.seconds) }
    #expect(seconds == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600])
    #expect(confirmation.patience(afterRetries: 3) == .seconds(5))
    let long = Confirmation(within: .seconds(7200), backoff: 2)
    #expect(long.patience(afterRetries: 9) == .seconds(7200))
    #expect(Confirmation(backoff: 1.5).patience(afterRetries: 2) == .seconds(11.25))
  }

  @Test func `an overdue command gives way to a newer one`() {
    var table = acknowledged()
    #expect(timeOut(&table, hasNewer: true) == "superseded 40: newer value")
  }

  @Test func `no command is repeated during a shutdown`() {
    var table = acknowledged()
    #expect(timeOut(&table, mayRetry: false) == "failed 40: not confirmed within 5s")
  }

  @Test func `a device that did not respond gets no retries until it reports`() {
    var table = acknowledged()
    _ = timeOut(&table, mayRetry: false)
    for (isReported, verdict) in [
      (false, "failed 40: not confirmed within 5s"), (true, "attempt 2 of 40"),
    ] {
      if isReported { table.deviceResponded(0) }
      let flight = InFlightCommand.of(.of(40), message: 1)
      _ = table.update(.first) { $0.send(flight, at: .at(0)) }
      _ = table.acknowledge(.first, confirmation: confirmation, isAction: false, at: .at(6000))
      #expect(timeOut(&table) == verdict)
    }
  }
}
