// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import HomeAssistant
import JSON
import LastOut
import Routing
import Values

/// What lamps show in Home Assistant's schema: which must be published next, and what they show.
///
/// A lamp follows the retained topics of its device, and so has their pace.
struct LightStates {
  private struct Shown {
    var lights: [Light]
    /// A digest of what each shows at the broker; `nil` before the first message.
    var digests: [Int?]
  }

  /// The lamps of the devices that have been looked at, by number.
  private var known: [Int: Shown] = [:]
  /// Devices that changed, each once, and the lamps of the first that are done.
  private var changed = Deque<Int>()
  private var isChanged: Set<Int> = []
  private var place = 0
  /// The last level of lamps that have no switch of their own.
  private var levels: [KeyIndex: Double] = [:]

  var isEmpty: Bool { changed.isEmpty }

  /// The broker may have lost everything.
  mutating func connected() {
    for number in known.keys { known[number]?.digests = [] }
  }

  /// These devices have other definitions.
  mutating func redefined(_ devices: [Int], isAnnounced: Bool) {
    for number in devices {
      known[number] = nil
      if isAnnounced { deviceChanged(number) }
    }
  }

  /// What a device shows changed.
  mutating func deviceChanged(_ number: Int) {
    if let shown = known[number], shown.lights.isEmpty { return }
    if isChanged.insert(number).inserted { changed.append(number) }
  }

  /// The members of a device-level set that a command to a lamp stands for.
  ///
  /// `key` is the lamp's main property; `nil` where there is no such lamp.
  mutating func members(
    for command: JSONValue,
    of key: KeyIndex,
    in registry: Registry
  ) -> [JSONValue.Member]? {
    let device = registry.device(of: key)
    let keys = registry.indices(ofDevice: device)
    let lights = lights(of: device, in: registry)
    guard let light = lights.first(where: { keys[$0.main] == key.rawValue }) else { return nil }
    let definition = registry.definition(ofDevice: device).pattern
    return light.members(
      for: command,
      definition.properties,
      options: definition.options,
      last: levels[key]
    )
  }

  /// The next lamp that shows something else, by its main property, and what it shows.
  mutating func next(
    in registry: Registry,
    _ status: (KeyIndex) -> KeyStatus
  ) -> (main: KeyIndex, state: JSONValue)? {
    while let number = changed.first {
      let lights = lights(of: number, in: registry)
      while place < lights.count {
        let light = lights[place]
        place += 1
        if let found = state(of: light, at: place - 1, ofDevice: number, in: registry, status) {
          return found
        }
      }
      place = 0
      _ = changed.popFirst()
      isChanged.remove(number)
    }
    return nil
  }

  private mutating func lights(of number: Int, in registry: Registry) -> [Light] {
    if let shown = known[number] { return shown.lights }
    let lights = Light.all(in: registry.definition(ofDevice: number).pattern)
    known[number] = Shown(lights: lights, digests: [])
    return lights
  }

  private mutating func state(
    of light: Light,
    at place: Int,
    ofDevice number: Int,
    in registry: Registry,
    _ status: (KeyIndex) -> KeyStatus
  ) -> (main: KeyIndex, state: JSONValue)? {
    let keys = registry.indices(ofDevice: number)
    guard !keys.isEmpty else { return nil }
    let properties = registry.definition(ofDevice: number).pattern.properties
    let state = light.state(properties) { Light.Reading(status(KeyIndex(keys[$0]))) }
    let main = KeyIndex(keys[light.main])
    if light.power == nil, case .number(let level) = status(main).target, level > 0 {
      levels[main] = level
    }
    guard let state, record(state, at: place, ofDevice: number) else { return nil }
    return (main, state)
  }

  /// Records what a lamp shows; `false` where it showed that already.
  private mutating func record(_ state: JSONValue, at place: Int, ofDevice number: Int) -> Bool {
    guard var shown = known[number] else { return false }
    let digest = state.hashValue
    if shown.digests.count < shown.lights.count {
      shown.digests = Array(repeating: nil, count: shown.lights.count)
    }
    guard shown.digests[place] != digest else { return false }
    shown.digests[place] = digest
    known[number] = shown
    return true
  }

  /// The message was not accepted: it is due again.
  mutating func putBack(_ main: KeyIndex, in registry: Registry) {
    let number = registry.device(of: main)
    known[number]?.digests = []
    deviceChanged(number)
  }
}

extension Light.Reading {
  fileprivate init(_ status: KeyStatus) {
    let isUnderWay =
      switch status.phase {
      case .accepted, .sending, .sent: true
      case .rejected, .unchanged, .superseded, .cancelled, .confirmed, .failed, .expired, nil: false
      }
    self.init(
      status.target,
      isPending: isUnderWay && status.target != status.actual,
      since: status.since
    )
  }
}
