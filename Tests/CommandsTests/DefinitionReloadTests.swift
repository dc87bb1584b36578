// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Testing

@testable import Commands

@Suite struct DefinitionReloadTests {
  /// Devices `d0`, `d1` … with three properties, the first of which excludes the second.
  private static func devices(_ count: Int) -> [Device] {
    (0..<count).map { number in
      .of("d\(number)", [.level("a") { $0.excludes = ["b"] }, .level("b"), .level("c")])
    }
  }

  private static func reload(from old: [Device], to new: [Device]) -> DefinitionReload {
    let registry = Registry(old)
    return DefinitionReload(
      from: registry,
      to: Registry(new, continuing: registry),
      lanes: LaneAssignment(limits: [:], numbers: [:])
    )
  }

  private static func prepare(_ reload: inout DefinitionReload, _ limit: Int) -> Int {
    var steps = 0
    while true {
      if case .prepared = reload.phase { return steps }
      _ = reload.prepare(limit)
      steps += 1
    }
  }

  @Test(arguments: [1, 2, 3, 4, 100])
  func `what is prepared in steps is what is derived at once`(limit: Int) {
    var reload = Self.reload(from: Self.devices(2), to: Self.devices(5))
    _ = Self.prepare(&reload, limit)
    let relations = Relations.all(in: reload.registry)
    let facts = PropertyFacts.all(in: reload.registry, relations)
    #expect(reload.facts.count == 15)
    for key in facts.keys {
      #expect(reload.relations[key].excluded == relations[key].excluded)
      #expect(reload.facts[key].hasExcluded == facts[key].hasExcluded)
      #expect(reload.facts[key].device == facts[key].device)
    }
    #expect(reload.hasOtherSources == [false, false, true, true, true])
  }

  @Test func `a step prepares no more keys than it may, but one device at least`() {
    var reload = Self.reload(from: Self.devices(2), to: Self.devices(4))
    // Twelve keys two by two, then each device with its three keys.
    #expect(Self.prepare(&reload, 2) == 6 + 4)
  }

  @Test func `a key begins to migrate once, and only after the new definitions count`() {
    var reload = Self.reload(from: Self.devices(1), to: Self.devices(2))
    #expect(reload.beginMigration(of: .first) == nil)
    _ = Self.prepare(&reload, 100)
    var (facts, relations) = (
      KeyArray<PropertyFacts>(), LazyArray<Relations>(repeating: Relations(), count: 0)
    )
    reload.replace(&facts, &relations)
    #expect(facts.count == 6)
    #expect(reload.beginMigration(of: .first)?.key == "d0/a")
    #expect(reload.beginMigration(of: .first) == nil)
    #expect(reload.beginMigration(of: KeyIndex(3)) == nil)  // A new key.
  }

  @Test func `the slices cover every key from before and every device`() {
    var reload = Self.reload(from: Self.devices(1), to: Self.devices(5))
    _ = Self.prepare(&reload, 100)
    var (facts, relations) = (
      KeyArray<PropertyFacts>(), LazyArray<Relations>(repeating: Relations(), count: 0)
    )
    reload.replace(&facts, &relations)
    #expect(reload.nextSlice(2) == 0..<2)
    #expect(reload.nextSlice(2) == 2..<4)
    #expect(reload.nextSlice(2) == 4..<5)
    #expect(reload.nextSlice(2) == nil)
  }
}
