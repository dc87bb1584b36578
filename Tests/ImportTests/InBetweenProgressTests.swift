// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import Import
import Testing

/// What a second `settle import --in-between` says.
struct InBetweenProgressTests {
  private static let moved = [
    Announcement(topic: "direct/bridge/state", text: #"{"state":"online"}"#)
  ]
  private static let inner = "direct-discovery/light/0x1/light/config"
  private static let outer = "ha/light/0x1/light/config"

  private func text(_ more: [(String, String)]) -> String {
    let retained = Self.moved + more.map { Announcement(topic: $0.0, text: $0.1) }
    return InBetweenProgress(inner: "direct", prefix: "ha").text(retained, base: "z")
  }

  @Test func `Zigbee2MQTT has moved once it reports its state at the new base topic`() {
    let progress = InBetweenProgress(inner: "direct", prefix: "ha")
    #expect(progress.hasMoved(Self.moved))
    #expect(!progress.hasMoved([]))
    #expect(!progress.hasMoved([Announcement(topic: "direct/bridge/state", text: "")]))
  }

  @Test(arguments: [
    ([], "announces nothing to direct-discovery yet"),
    ([(outer, "{}")], "discovery_topic: direct-discovery"),
    ([(outer, "{}")], "status_topic: ha/status"),
    ([(inner, "{}")], "Of its 1 announcement to Home Assistant, 1 are not carried"),
    ([(inner, "{}"), (outer, "")], "Restart the gateway"),
    ([(inner, "{}"), (outer, "{}")], "all carried from direct-discovery to ha."),
    ([("direct/bridge/state", #"{"state":"offline"}"#)], "moved to direct, and is offline."),
    ([("direct/bridge/state", "offline")], "moved to direct, and is offline."),
  ])
  func `what is missing is named`(_ retained: [(String, String)], _ expected: String) {
    #expect(text(retained).contains(expected))
  }
}
