// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Routing
import Testing

@testable import GatewayCore

@Suite struct RouteAdmissionTests {
  private static func admit(
    _ topic: String = "in/a",
    retained: Bool = false,
    trail: String = "",
    isShuttingDown: Bool = false
  ) -> RouteMachine.Rejection? {
    var routes = RouteMachine(
      [
        RouteConfiguration(
          from: .init(topic: "in/+"),
          to: .init(topic: "out/+"),
          policy: Policy(delay: .milliseconds(100))
        )
      ],
      brokers: [],
      ttl: .seconds(60),
      limit: 10
    )
    let keys = routes.outputs(fedBy: Array(topic.utf8).span, broker: 0)
    return routes.admit(
      [UInt8(1)].span,
      document: nil,
      for: keys,
      retained: retained,
      trail: trail,
      mark: "here",
      isShuttingDown: isShuttingDown,
      at: Moment(nanoseconds: 1)
    )
  }

  @Test func `a message that a route matches is accepted, and one that none matches is ignored`() {
    #expect(Self.admit() == nil)
    #expect(Self.admit("elsewhere") == nil)
  }

  @Test func `a retained message is rejected`() {
    #expect(Self.admit(retained: true) == .retained)
  }

  @Test func `a message that has passed this gateway is rejected`() {
    let reason = "the message returned to this gateway"
    #expect(Self.admit(trail: "there here") == .returned(to: "out/a", reason: reason))
    #expect(Self.admit(trail: "there") == nil)
  }

  @Test func `nothing is accepted while the gateway shuts down`() {
    #expect(Self.admit(isShuttingDown: true) == .other(.closing, reason: "shutting down"))
  }
}
