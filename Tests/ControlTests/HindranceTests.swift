// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Testing

/// What is in the way of a command.
struct HindranceTests {
  private func report(_ state: StatusReport.Broker.State, away: [String] = []) -> StatusReport {
    var report = StatusReport(version: "1", isRunning: true)
    report.brokers = [StatusReport.Broker(name: "mqtt", url: "mqtt://nas", state: state)]
    report.brokers[0].reason = state == .connected ? nil : "connection refused"
    report.devices.away = away.map { StatusReport.Away(id: $0, sinceMilliseconds: 1) }
    return report
  }

  @Test func `the broker is in the way of everything, a device of its own keys`() {
    let keys = ["lamp/power", "lamp/brightness"]
    #expect(report(.connected).hindrance(of: keys) == nil)
    #expect(
      report(.waiting, away: ["lamp"]).hindrance(of: keys)
        == "the broker mqtt://nas is not connected: connection refused"
    )
    #expect(report(.connected, away: ["fan", "lamp"]).hindrance(of: keys) == "lamp is offline")
    #expect(report(.connected, away: ["fan"]).hindrance(of: keys) == nil)
    #expect(
      report(.connected, away: ["fan", "lamp"]).hindrance(of: keys + ["fan/speed"])
        == "fan, lamp are offline"
    )
  }
}
