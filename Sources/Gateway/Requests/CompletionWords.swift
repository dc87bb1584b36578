// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import LastOut
import Values

/// The words that complete the start of a key: keys, or where they are too many to choose from, the
/// devices that have one.
struct CompletionWords {
  /// The longest list of keys that is offered.
  static let mostKeys = 1000

  private let kind: ControlRequest.Completion
  private var keys: [String] = []
  private var areas: Set<String> = []
  /// Whether there are more keys than can be offered, so that the devices are.
  private(set) var isOfDevices = false

  init(_ kind: ControlRequest.Completion) { self.kind = kind }

  /// What is left to be offered after the last device.
  var rest: [String] { isOfDevices ? [] : areas.sorted() + keys }

  /// Adds what a device has.
  ///
  /// - Returns: The word to offer at once, if devices are offered; if they are from this one on,
  ///   ``isOfDevices`` becomes `true`, and the caller begins again with the first device.
  mutating func add(device number: Int, in registry: Registry) -> String? {
    if kind == .area {
      if let area = registry.area(ofDevice: number) { areas.insert(AreaName.word(area)) }
      return nil
    }
    let accepted = registry.indices(ofDevice: number).lazy.map {
      registry.definition(of: KeyIndex($0)).property
    }.filter { [kind] in kind.accepts($0) }
    guard !isOfDevices else {
      return accepted.isEmpty ? nil : "\(registry.id(ofDevice: number))/"
    }
    let device = registry.id(ofDevice: number)
    let before = keys.count
    for property in accepted { keys.append("\(device)/\(property.id)") }
    if kind == .set, keys.count > before { keys.append(device) }
    if keys.count > Self.mostKeys {
      isOfDevices = true
      keys = []
    }
    return nil
  }
}

extension ControlRequest.Completion {
  /// Whether a change of this kind accepts the property.
  fileprivate func accepts(_ property: Property) -> Bool {
    switch self {
    case .any: true
    case .set: !property.isReadOnly
    case .step: !property.isReadOnly && property.kind.numberRule != nil
    case .toggle: !property.isReadOnly && property.kind == .boolean
    case .area: false
    }
  }
}
