// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import HomeAssistant
@testable import Import
import JSON
import LastOut
import Testing
import Values

/// When a running gateway imports what is announced, on a simulated clock.
struct AnnouncementFollowerTests {
  private static let start = Moment(nanoseconds: 1_000_000_000)

  private static func after(_ seconds: Double) -> Moment {
    start.advanced(by: .milliseconds(Int64(seconds * 1000)))
  }

  private static func follower(
    _ limits: AnnouncementFollower.Limits = .init()
  ) -> AnnouncementFollower {
    AnnouncementFollower(ImportConfiguration(), request: ImportPlan.Request(), limits: limits)
  }

  @Test func `an import begins when nothing new was announced for the quiet time`() {
    var follower = Self.follower()
    #expect(follower.deadline == nil)

    follower.hear("homie/5/a/$description", "{}", at: 0)
    follower.hear("homie/5/b/$description", "{}", at: 3)

    #expect(follower.deadline == Self.after(8))
    #expect(follower.begin(at: Self.after(7.9)) == nil)
    #expect(follower.begin(at: Self.after(8))?.count == 2)
    follower.finish()
    #expect(follower.deadline == nil)
  }

  @Test func `announcements without a pause are imported after a minute`() {
    var follower = Self.follower()
    for second in 0..<60 {
      #expect(follower.begin(at: Self.after(Double(second))) == nil)
      follower.hear("homie/5/device-\(second)/$description", "{}", at: Double(second))
    }

    #expect(follower.deadline == Self.after(60))
    #expect(follower.begin(at: Self.after(60))?.count == 60)
  }

  @Test func `groups are known while an import knew what this connection has announced`() {
    let (house, garden) = ("zigbee2mqtt/bridge/groups", "zigbee2mqtt/garden/bridge/groups")
    var follower = Self.follower()
    func known() -> [Bool] {
      ["zigbee2mqtt/lamps", "zigbee2mqtt/garden/lamps"].map { follower.isKnown(group: $0) }
    }
    #expect(known() == [false, false])
    follower.hear(house, "[1]", at: 0)
    #expect(known() == [false, false])
    _ = follower.begin(at: Self.after(5))
    #expect(known() == [false, false])
    follower.hear(garden, "[]", at: 6)
    follower.finish()
    #expect(known() == [true, false])
    _ = follower.begin(at: Self.after(11))
    follower.finish()
    #expect(known() == [true, true])

    follower.hear(garden, "[2]", at: 12)
    #expect(known() == [true, false])
    _ = follower.begin(at: Self.after(17))
    follower.finish()
    follower.connectionEnded()
    #expect(known() == [false, false])
    follower.hasGroupNews = false
    follower.hear(house, "[1]", at: 20)
    #expect(known() == [true, false])
    #expect(follower.hasGroupNews)
    follower.hear(garden, "[2]", at: 21)
    #expect(known() == [true, true])
  }

  @Test func `a thousand announcements at once are one import`() {
    var follower = Self.follower()
    for number in 0..<1000 {
      follower.hear("homeassistant/light/l\(number)/config", #"{"n":\#(number)}"#, at: 0)
    }
    var imports = 0
    for second in 0..<120 where follower.begin(at: Self.after(Double(second))) != nil {
      imports += 1
      follower.finish()
    }
    #expect(imports == 1)
  }

  @Test func `one import runs at a time, and what is announced meanwhile has the next`() {
    var follower = Self.follower()
    follower.hear("homie/5/a/$description", "{}", at: 0)
    _ = follower.begin(at: Self.after(5))

    follower.hear("homie/5/b/$description", "{}", at: 6)

    #expect(follower.deadline == nil)
    #expect(follower.begin(at: Self.after(60)) == nil)
    follower.finish()
    #expect(follower.deadline == Self.after(11))
    #expect(follower.begin(at: Self.after(61))?.count == 2)
  }

  @Test func `what the broker sends again changes nothing, another payload does`() {
    var follower = Self.follower()
    follower.hear("zigbee2mqtt/bridge/devices", "[1]", at: 0)
    _ = follower.begin(at: Self.after(5))
    follower.finish()

    follower.hear("zigbee2mqtt/bridge/devices", "[1]", at: 20)
    #expect(follower.deadline == nil)
    follower.hear("zigbee2mqtt/bridge/devices", "[2]", at: 30)
    #expect(follower.deadline == Self.after(35))
  }

  @Test func `an announcement that is removed is forgotten, and one that was never there is none`()
  {
    var follower = Self.follower()
    follower.hear("homie/5/a/$description", "", at: 0)
    #expect(follower.deadline == nil)
    follower.hear("homie/5/a/$description", "{}", at: 0)
    follower.hear("homie/5/a/$description", "", at: 1)
    #expect(follower.count == 0)
    #expect(follower.begin(at: Self.after(6)) == [:])
  }

  @Test func `other topics are no announcements`() {
    var follower = Self.follower()
    let others = [
      "settle/lamp/power/set", "zigbee2mqtt/lamp", "zigbee2mqtt/bridge/info",
      "a/b/c/bridge/devices",
      "homeassistant/status", "config", "devices", "homie/5/a/light/power",
    ]
    for topic in others {
      let isAnnouncement = follower.hear(topic, "{}", at: 0)
      #expect(!isAnnouncement, "\(topic)")
    }
    #expect(follower.deadline == nil)
  }

  @Test(arguments: DiscoveryConfiguration.Format.all)
  func `announcements of this program are not counted`(format: DiscoveryConfiguration.Format) throws
  {
    var follower = Self.follower()
    var configuration = DiscoveryConfiguration()
    configuration.format = format
    let announcer = DiscoveryAnnouncer(
      baseTopic: "settle",
      configuration: configuration,
      version: "1"
    )
    let power = Property(readOnly: "power", kind: .boolean)
    let lamp = Device(id: "lamp", name: "Lamp", properties: [power])
    let messages = announcer.messages(for: lamp)
    #expect(!messages.isEmpty)

    for message in messages {
      let text = JSONWriter.text(try #require(message.payload))
      let isAnnouncement = follower.hear(message.topic, text, at: 0)
      #expect(isAnnouncement)
    }

    #expect(follower.count == 0)
    #expect(follower.deadline == nil)
  }

  @Test func `files that were read again for another reason are compared with what is announced`() {
    var follower = Self.follower()
    follower.filesChanged(at: Self.start)
    #expect(follower.deadline == nil)
    follower.hear("homie/5/a/$description", "{}", at: 0)
    _ = follower.begin(at: Self.after(5))
    follower.finish()

    follower.filesChanged(at: Self.after(10))

    #expect(follower.deadline == Self.after(15))
  }

  @Test(arguments: [1, 2])
  func `more than an import accepts is not kept, and nothing is imported`(limit: Int) {
    var limits = AnnouncementFollower.Limits()
    if limit == 1 { limits.messages = 2 } else { limits.bytes = 60 }
    var follower = Self.follower(limits)
    for name in ["a", "b"] { follower.hear("homie/5/\(name)/$description", "{}", at: 0) }
    #expect(!follower.isFull)

    follower.hear("homie/5/c/$description", "{}", at: 1)

    #expect(follower.isFull)
    #expect(follower.count == 2)
    #expect(follower.deadline == nil)
  }

  @Test func `with some sources only their topics are followed`() {
    var settings = GatewayConfiguration()
    settings.importing = ImportConfiguration()
    settings.importing?.sources = [.homeassistant]
    settings.discovery = DiscoveryConfiguration()
    settings.discovery?.prefix = "ha"
    let request = DeviceImport.request(settings)
    #expect(request?.sources == [.homeassistant])
    #expect(request?.filters == ["ha/+/+/config", "ha/+/+/+/config"])
    // Whose devices these are is known from the bridges.
    #expect(request?.bridgeFilters == ["+/bridge/devices", "+/+/bridge/devices"])
    settings.importing = nil
    #expect(DeviceImport.request(settings) == nil)
  }
}

extension AnnouncementFollower {
  @discardableResult
  fileprivate mutating func hear(_ topic: String, _ payload: String, at seconds: Double) -> Bool {
    let (topic, payload) = (Array(topic.utf8), Array(payload.utf8))
    let now = Moment(nanoseconds: 1_000_000_000 + UInt64(seconds * 1_000_000_000))
    return receive(topic.span, payload.span, at: now)
  }
}

extension DiscoveryConfiguration.Format {
  fileprivate static let all: [Self] = [.device, .component]
}
