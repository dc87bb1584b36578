// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import Configuration
import Devices
import JSON
import LastOut
import Simulation
import TestBroker
import Testing

/// Every profile against devices that behave as their convention is documented.
@Suite(.blocking) struct ProfileScenarios {
  /// Phases after which nothing more comes.
  private static let ends: Set = [
    "confirmed", "failed", "expired", "cancelled", "superseded", "unchanged", "rejected",
  ]

  /// One convention's gateway and devices.
  private struct House {
    let bench: Bench
    let witness: RecordingSubscriber
    let stage: DeviceStage

    init(_ cases: [ProfileCase]) throws {
      bench = try Bench.running(devices: cases.map(\.deviceText).joined())
      witness = try bench.witness()
      stage = DeviceStage(witness)
      for row in cases {
        stage.add(row.device(row.topic), as: row.name)
        stage.add(row.device(row.deafTopic), as: row.deafName)
        stage.comeUp(row.name)
        stage.comeUp(row.deafName)
        stage.deafen(row.deafName)
      }
    }

    /// What left on a topic; numbers of messages, which differ each time, are 1.
    func commands(on topic: String) -> [String] {
      witness.texts(on: topic).map { text in
        guard text.hasPrefix(#"{"id":"#) else { return text }
        return #"{"id":1"# + text.drop { $0 != "," }
      }
    }

    func phases(_ key: String) -> [String] {
      ProfileScenarios.phases(of: key, in: witness.messages)
    }

    /// Asks for a change on `settle/<key>/<verb>`, lets it leave if it would wait, and waits for
    /// its end; checks what left for the device meanwhile.
    func change(
      _ row: ProfileCase,
      _ change: ProfileCase.Change,
      _ verb: String,
      isFlushed: Bool = true
    ) {
      let key = "\(row.name)/\(change.id)"
      let topic = row.topic(change.topic)
      let before = phases(key).count
      let sent = commands(on: topic).count
      witness.publish("settle/\(key)/\(verb)", verb == "toggle" ? "" : change.text)
      if isFlushed { witness.publish("settle/\(key)/flush", "") }
      let isOver = stage.waitFor {
        let told = ProfileScenarios.phases(of: key, in: $0).dropFirst(before)
        return change.phase == "sent" ? told.contains("sent") : told.contains { ends.contains($0) }
      }
      let comment: Comment = "\(row.profile) \(verb) \(change.id) \(change.text)"
      #expect(isOver, comment)
      #expect(phases(key).last == change.phase, comment)
      #expect(commands(on: topic).dropFirst(sent) == [change.payload], comment)
    }
  }

  private static func phases(
    of key: String,
    in messages: [RecordingSubscriber.Message]
  ) -> [String] {
    messages.filter { $0.topic == "settle/\(key)/event" }.compactMap {
      (try? JSONParser.parse($0.text))?["phase"]?.string
    }
  }

  @Test(arguments: ConventionName.allCases)
  func `a device of each profile is set, stepped, toggled, hurried, merged and awaited`(
    convention: ConventionName
  ) throws {
    let cases = ProfileCases.all(convention)
    let house = try House(cases)
    for row in cases {
      house.change(row, row.set, "set")
      if let step = row.step { house.change(row, step, "step") }
      hurry(row, in: house)
      if let toggle = row.toggle { house.change(row, toggle, "toggle") }
      if let merge = row.merge { try self.merge(row, merge, in: house) }
      if row.confirms { failOn(row, in: house) }
      if row.tellsAvailability { try leaveAndReturn(row, in: house) }
    }
    let status = try house.bench.client().ask(#"{"status":true}"#)["status"]
    #expect(status?["counters"]?["reports_unreadable"] == 0, "\(status?["devices"] ?? nil)")
  }

  /// The urgent value leaves although the policy is minutes long, and ends what it overrides.
  private func hurry(_ row: ProfileCase, in house: House) {
    if let pending = row.urgent.pending {
      house.witness.publish("settle/\(row.name)/\(pending.id)/set", pending.text)
    }
    house.change(row, row.urgent.change, "set", isFlushed: false)
    guard let pending = row.urgent.pending else { return }
    let key = "\(row.name)/\(pending.id)"
    let isOver = house.stage.waitFor { Self.phases(of: key, in: $0).last == "cancelled" }
    #expect(isOver, "\(key): \(house.phases(key))")
  }

  private func merge(_ row: ProfileCase, _ merge: ProfileCase.Merge, in house: House) throws {
    let topic = row.topic(merge.topic)
    let sent = house.commands(on: topic).count
    let counts = merge.ids.map { house.phases("\(row.name)/\($0)").count }
    house.witness.publish("settle/\(row.name)/set", merge.set)
    let first = try #require(merge.ids.first)
    house.witness.publish("settle/\(row.name)/\(first)/flush", "")
    let isOver = house.stage.waitFor { messages in
      zip(merge.ids, counts).allSatisfy { id, count in
        Self.phases(of: "\(row.name)/\(id)", in: messages).dropFirst(count).contains("confirmed")
      }
    }
    #expect(isOver, "\(row.profile): \(merge.ids.map { house.phases("\(row.name)/\($0)") })")
    #expect(house.commands(on: topic).dropFirst(sent) == [merge.payload])
  }

  /// The twin that takes no command: what is not confirmed fails, and the target goes back.
  private func failOn(_ row: ProfileCase, in house: House) {
    let key = "\(row.deafName)/\(row.set.id)"
    house.witness.publish("settle/\(key)/set", row.set.text)
    house.witness.publish("settle/\(key)/flush", "")
    let isOver = house.stage.waitFor { messages in
      let target = messages.last { $0.topic == "settle/\(key)" }?.text
      return Self.phases(of: key, in: messages) == ["sent", "failed"]
        && (row.initial.map { $0 == target } ?? (target != row.set.text))
    }
    let target = house.witness.texts(on: "settle/\(key)")
    #expect(isOver, "\(key): \(house.phases(key)), \(target)")
  }

  /// What is asked of an absent device waits for it.
  private func leaveAndReturn(_ row: ProfileCase, in house: House) throws {
    let key = "\(row.name)/\(row.back.id)"
    let topic = row.topic(row.back.topic)
    let sent = house.commands(on: topic).count
    let before = house.phases(key).count
    house.stage.lose(row.name)
    house.witness.publish("settle/\(key)/set", row.back.text)
    house.witness.publish("settle/\(key)/flush", "")
    // Told in order: once this is refused, the flush has been taken.
    let marker = "settle/\(row.name)/\(row.back.id)/step"
    house.witness.publish(marker, "not a number")
    #expect(
      house.stage.waitFor { Self.phases(of: key, in: $0).dropFirst(before).contains("rejected") }
    )
    let client = try house.bench.client()
    guard case .array(let rows) = try client.ask(#"{"pending":"\#(key)"}"#)["pending"] else {
      Issue.record("\(key): no list of what is pending")
      return
    }
    #expect(rows.first?["waits"] == "offline", "\(key): \(rows)")
    #expect(house.commands(on: topic).count == sent)
    house.stage.comeUp(row.name)
    let end = row.back.phase
    #expect(house.stage.waitFor { Self.phases(of: key, in: $0).dropFirst(before).contains(end) })
    #expect(house.commands(on: topic).dropFirst(sent) == [row.back.payload], "\(key)")
  }

  @Test func `a WLED strip takes power, brightness and color in one message`() throws {
    let bench = try Bench.running(devices: "strip: {profile: wled/light, topic: wled/s}\n")
    let witness = try bench.witness()
    let stage = DeviceStage(witness)
    stage.add(WLEDStrip.device("wled/s"), as: "strip")
    stage.comeUp("strip")
    witness.publish(
      "settle/strip/set",
      ##"{"power":true,"brightness":50,"color":"#ff8800","transition":0.7}"##
    )
    #expect(
      stage.waitFor { messages in
        ["brightness", "color"].allSatisfy {
          Self.phases(of: "strip/\($0)", in: messages) == ["sent", "confirmed"]
        }
      }
    )
    #expect(
      witness.texts(on: "wled/s/api") == [
        #"{"on":true,"bri":50,"seg":{"col":[[255,136,0]]},"transition":7}"#
      ]
    )
  }

  @Test func `a Shelly whose status notifications are off confirms by its reply alone`() throws {
    let bench = try Bench.running(
      devices: "plug: {profile: shelly/gen2-switch, topic: plus1}\n"
    )
    let witness = try bench.witness()
    witness.publish("settle/plug/power/set", "on")
    let call = try JSONParser.parse(try #require(witness.texts(on: "plus1/rpc", count: 1).first))
    guard case .integer(let number)? = call["id"] else {
      Issue.record("no number in \(call)")
      return
    }
    for id in [number + 1, number] {
      witness.publish("settle/rpc", #"{"id":\#(id),"src":"plus1","dst":"settle","result":{}}"#)
    }
    #expect(
      witness.waitFor { Self.phases(of: "plug/power", in: $0) == ["sent", "confirmed"] },
      "\(witness.texts(on: "settle/plug/power/event"))"
    )
    #expect(witness.waitFor("settle/plug/power", "true"))
  }

  @Test func `a Shelly that refuses a call fails at once, with its own words`() throws {
    let bench = try Bench.running(
      devices: "plug: {profile: shelly/gen2-switch, topic: plus1, parameters: {channel: 3}}\n"
    )
    let witness = try bench.witness()
    let stage = DeviceStage(witness)
    // It has one channel, and none with the number 3.
    stage.add(ShellyRPC.device("plus1", parts: ["switch:0": ShellyRPC.relay]), as: "plug")
    stage.comeUp("plug")
    witness.publish("settle/plug/power/set", "on")
    #expect(
      stage.waitFor { Self.phases(of: "plug/power", in: $0) == ["sent", "failed"] },
      "\(witness.texts(on: "settle/plug/power/event"))"
    )
    let told = try #require(witness.texts(on: "settle/plug/power/event").last)
    #expect(told.contains("the device refused: No handler for Switch.Set"))
  }

  @Test func `every profile that ships has a row here`() {
    let rows = ConventionName.allCases.flatMap { ProfileCases.all($0) }.map(\.profile)
    // What has no properties of its own has nothing to play.
    let names = ProfileStore(problems: Problems()).names.filter { $0 != "zigbee2mqtt/device" }
    #expect(rows.sorted() == names.sorted())
  }
}
