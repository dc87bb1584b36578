// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import MQTT
import Testing

@Suite struct SubscriptionTableTests {
  private func table(_ filters: String...) -> SubscriptionTable {
    var table = SubscriptionTable()
    for filter in filters { table.put(.init(filter: filter, wantsRetained: true)) }
    return table
  }

  @Test func `a filter occurs once, where it was first, as it was last`() {
    var table = table("a", "b/+", "c")
    table.put(.init(filter: "a", qos: 2, wantsRetained: false))
    table.put(.init(filter: "b/+", qos: 0, wantsRetained: false))
    #expect(table.all.map(\.filter) == ["a", "b/+", "c"])
    #expect(table.all.map(\.qos) == [2, 0, 1])
  }

  @Test func `removing returns the filters that existed and keeps the others`() {
    var table = table("a", "b/+", "c", "d/#")
    #expect(table.remove(["d/#", "x", "a"]) == ["d/#", "a"])
    #expect(table.all.map(\.filter) == ["b/+", "c"])
    #expect(table.contains(matching: "c") { _ in true })
    #expect(table.contains(matching: "b/1") { _ in true })
    #expect(!table.contains(matching: "a") { _ in true })
    #expect(!table.contains(matching: "d/1") { _ in true })
    #expect(table.remove(["a"]) == [])
  }

  @Test func `what is added and removed many times stays in order`() {
    var table = SubscriptionTable()
    var model: [String] = []
    for round in 0..<40 {
      for number in 0..<10 {
        let filter = number.isMultiple(of: 3) ? "a/\(round)/\(number)/+" : "a/\(round)/\(number)"
        table.put(.init(filter: filter, wantsRetained: true))
        model.append(filter)
      }
      let leaving = stride(from: 0, to: model.count, by: round.isMultiple(of: 7) ? 1 : 3)
        .map { model[$0] }
      #expect(table.remove(leaving) == leaving)
      model.removeAll(where: leaving.contains)
      #expect(table.all.map(\.filter) == model)
      let found = { (filter: String) in table.contains(matching: filter) { $0.filter == filter } }
      #expect(model.allSatisfy(found))
      #expect(!leaving.contains { filter in table.contains(matching: filter) { _ in true } })
    }
  }

  @Test(arguments: [
    ("state/lamp", true), ("state/other", true), ("exact", true), ("exact/more", false),
    ("quiet", false), ("quiet/a", false),
  ])
  func `a topic is looked for by its text and by wildcards`(topic: String, isWanted: Bool) {
    var table = table("exact", "state/+")
    table.put(.init(filter: "quiet", wantsRetained: false))
    table.put(.init(filter: "quiet/#", wantsRetained: false))
    #expect(table.contains(matching: topic) { $0.wantsRetained } == isWanted)
  }

  @Test func `one subscription that wants it is enough where several match`() {
    var table = table("a/#")
    table.put(.init(filter: "a/b", wantsRetained: false))
    #expect(table.contains(matching: "a/b") { $0.wantsRetained })
  }
}

@Suite struct SubscriptionPacketTests {
  private func packets(
    _ subscriptions: [Subscription],
    _ version: MQTTConfiguration.ProtocolVersion = .v5
  ) -> [Subscription.Packet] {
    Subscription.Packet.all(for: subscriptions, version: version)
  }

  @Test func `filters with the same options share packets of at most a hundred`() {
    let filters = (0..<250).map { "a/\($0)" }
    let packets = packets(filters.map { .init(filter: $0, wantsRetained: true) })
    #expect(packets.map(\.filters.count) == [100, 100, 50])
    #expect(packets.flatMap(\.filters) == filters)
  }

  @Test func `each set of options has a packet of its own`() {
    let packets = packets([
      .init(filter: "a", wantsRetained: true), .init(filter: "b", wantsRetained: false),
      .init(filter: "c", qos: 0, wantsRetained: true), .init(filter: "d", wantsRetained: true),
    ])
    #expect(Set(packets.map(\.filters)) == [["a", "d"], ["b"], ["c"]])
  }

  @Test func `MQTT 3.1.1 has no options, and no quality of service above 2`() {
    let packets = packets(
      [
        .init(filter: "a", qos: 2, wantsRetained: true),
        .init(filter: "b", qos: 7, wantsRetained: false, noLocal: true, keepsRetainFlag: true),
      ],
      .v311
    )
    #expect(packets.map(\.filters) == [["a", "b"]])
    #expect(packets.map(\.options) == [0])
    #expect(packets.map(\.qos) == [2])
  }
}
