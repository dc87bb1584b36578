// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Testing
import Values

/// Devices of a template share one definition, which nobody can tell from outside.
struct SharedDefinitionTests {
  private static func property(_ id: String, aliases: [String] = []) -> Property {
    var property = Property(
      id: id,
      kind: .integer(NumberRule(range: 0...100, step: 1)),
      policy: .standard,
      command: CommandEndpoint(
        topic: TemplateMark.marked("fleet/$1/set/\(id)"),
        payload: PayloadTemplate(
          .object([
            JSONValue.Member("unit", .string(TemplateMark.marked("$2"))),
            JSONValue.Member("on", "$value"),
          ])
        )
      )
    )
    property.aliases = aliases
    property.name = TemplateMark.marked("\(id) of $1")
    property.state = StateSource(
      topic: TemplateMark.marked("fleet/$1/$2/\(id)"),
      value: .whole,
      get: StateRequest(topic: TemplateMark.marked("fleet/$1/get"), payload: [])
    )
    return property
  }

  /// A template whose devices have a site and a unit.
  private static func pattern(_ properties: Int = 2) -> Device {
    var device = Device(
      id: TemplateMark.marked("d-$1-$2"),
      name: TemplateMark.marked("Device $2 of $1"),
      properties: (0..<properties).map { property("p\($0)", aliases: ["alias\($0)"]) }
    )
    device.lane = TemplateMark.marked("lane-$1")
    device.availability = [
      AvailabilitySource(
        topic: TemplateMark.marked("fleet/$1/$2/alive"),
        value: .whole,
        online: .string(TemplateMark.marked("up-$2")),
        offline: "down"
      )
    ]
    return device
  }

  private static let sites = [("a", "1"), ("a", "007"), ("b-c", "1"), ("b", "c-2")]

  private static func fillings(
    _ site: (String, String)
  ) -> [Int: DeviceTemplate.Filling] {
    [1: DeviceTemplate.Filling(site.0), 2: DeviceTemplate.Filling(site.1)]
  }

  /// Devices that share a definition, and the same devices written out.
  private static func both(
    _ pattern: Device,
    _ sites: [(String, String)] = sites
  ) -> (shared: [DeviceInstance], own: [DeviceInstance]) {
    let template = TemplateDevices(DeviceTemplate(pattern))
    let own = sites.map { DeviceInstance(DeviceTemplate(pattern).device(fillings($0))) }
    return (sites.map { template.device(fillings($0)) }, own)
  }

  private static func expectEqual(_ left: Registry, _ right: Registry) {
    #expect(left.devices.map { $0 } == right.devices.map { $0 })
    #expect(left.properties.map(\.key) == right.properties.map(\.key))
    #expect(left.properties.map(\.isRetired) == right.properties.map(\.isRetired))
    #expect(left.properties.map(\.device) == right.properties.map(\.device))
    for (one, other) in zip(left.properties, right.properties) where !one.isRetired {
      #expect(one.property == other.property)
      #expect(one.command == other.command)
      #expect(one.commandTopic == other.commandTopic)
      #expect(one.states == other.states)
    }
    for number in left.devices.indices {
      #expect(left.id(ofDevice: number) == right.id(ofDevice: number))
      #expect(left.lane(ofDevice: number) == right.lane(ofDevice: number))
      #expect(left.availability(ofDevice: number) == right.availability(ofDevice: number))
      #expect(Array(left.indices(ofDevice: number)) == Array(right.indices(ofDevice: number)))
    }
    for name in ["d-a-1/p0", "d-a-007/alias1", "d-a-007", "d-b-c-1/p1", "d-b-c-1/p2", "d-x-1/p0"] {
      let bytes = Array(name.utf8)
      #expect(left.index(ofKey: bytes.span) == right.index(ofKey: bytes.span))
      #expect(left.deviceIndex(ofID: bytes.span) == right.deviceIndex(ofID: bytes.span))
    }
    #expect(left.indices(matching: "*/p1") == right.indices(matching: "*/p1"))
    #expect(left.keyCount == right.keyCount)
  }

  @Test(arguments: [1, 2, 12])
  func `devices of a template are as if they were written out`(properties: Int) {
    let (shared, own) = Self.both(Self.pattern(properties))
    let registry = Registry(shared, continuing: nil)
    #expect(registry.templates.map(\.count) == [Self.sites.count])
    Self.expectEqual(registry, Registry(own, continuing: nil))
  }

  @Test func `a template whose ranges differ makes devices of their own`() {
    var pattern = Self.pattern()
    pattern.properties[0].kind = .choice([TemplateMark.marked("mode-$1"), "off"])
    let (shared, own) = Self.both(pattern)
    let registry = Registry(shared, continuing: nil)
    #expect(registry.templates.isEmpty)
    Self.expectEqual(registry, Registry(own, continuing: nil))
  }

  @Test func `a reload keeps the numbers of both alike`() {
    var fewer = Self.pattern()
    fewer.properties.removeFirst()
    fewer.properties[0].ttl = .seconds(7)
    let versions = [
      Self.both(Self.pattern()), Self.both(fewer), Self.both(Self.pattern(3)),
      Self.both(Self.pattern(), [("x", "1")] + Self.sites.dropFirst()), Self.both(fewer, []),
      Self.both(Self.pattern()),
    ]
    var (shared, own) = (Registry([Device]()), Registry([Device]()))
    for version in versions {
      let (before, known) = (shared, own)
      shared = Registry(version.shared, continuing: shared)
      own = Registry(version.own, continuing: own)
      Self.expectEqual(shared, own)
      for place in before.properties.indices {
        #expect(
          shared.properties[place].isSame(as: before.properties[place])
            == own.properties[place].isSame(as: known.properties[place])
        )
      }
      for number in before.devices.indices {
        #expect(
          shared.hasSameDevice(number, as: before) == own.hasSameDevice(number, as: known)
        )
        #expect(
          shared.hasSameAvailability(number, as: before)
            == own.hasSameAvailability(number, as: known)
        )
      }
    }
  }

  @Test func `a template that is read again is the one that is in use`() {
    let first = Registry(Self.both(Self.pattern()).shared, continuing: nil)
    let second = Registry(Self.both(Self.pattern()).shared, continuing: first)
    #expect(second.definition(ofDevice: 0) === first.definition(ofDevice: 0))
    var other = Self.pattern()
    other.properties[1].ttl = .seconds(7)
    let third = Registry(Self.both(other).shared, continuing: second)
    #expect(third.definition(ofDevice: 0) !== first.definition(ofDevice: 0))
    #expect(third.definition(of: KeyIndex(0)) === first.definition(of: KeyIndex(0)))
    #expect(third.definition(of: KeyIndex(1)) !== first.definition(of: KeyIndex(1)))
  }

  @Test func `a device may change from one of a template to one of its own`() {
    let (shared, own) = Self.both(Self.pattern())
    let first = Registry(shared, continuing: nil)
    let second = Registry(own, continuing: first)
    #expect(
      second.properties.indices.allSatisfy { place in
        second.properties[place].isSame(as: first.properties[place])
      }
    )
    Self.expectEqual(Registry(shared, continuing: second), first)
  }
}
