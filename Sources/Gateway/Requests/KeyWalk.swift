// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import LastOut
import Values

/// A question about the keys that match a pattern, as far as it was answered.
///
/// It is answered in parts, so that a large one takes no turn of the loop for itself. It keeps its
/// place in the devices' order and no list of keys. If a reload changes that order meanwhile, keys
/// may be left out or come twice.
struct KeyWalk {
  let operation: ControlRequest.Operation
  var rows: RowListText
  var hasBegun = false
  private(set) var isDone = false
  private let pattern: Pattern
  /// What is offered in place of rows of devices.
  private var words: CompletionWords?
  /// The place of the next key: the device's in the order of definition, and the property's in it.
  private var place = (device: 0, property: 0)

  /// `nil` for a request that is no question: it is executed at one instant.
  init?(_ request: ControlRequest) {
    operation = request.operation
    pattern = Pattern(request.key)
    let name =
      switch operation {
      case .get: "get"
      case .pending: "pending"
      case .describe: "describe"
      case .log: "log"
      case .devices: "devices"
      case .flush, .cancel, .set, .step, .toggle, .scene, .watch, .record, .reload, .status: ""
      }
    guard !name.isEmpty else { return nil }
    words = request.completion.map(CompletionWords.init)
    rows = RowListText(words == nil ? name : "complete", id: request.replyID)
  }

  /// Appends the words of a shell's completion; `false` if the request is about something else.
  mutating func appendWords(
    of registry: Registry,
    work: inout Int,
    to output: inout [UInt8]
  ) -> Bool {
    guard words != nil else { return false }
    while let number = nextDevice(in: registry, work: &work) {
      let isOfDevices = words?.isOfDevices
      if let word = words?.add(device: number, in: registry) {
        rows.append(.string(word), to: &output)
      }
      if words?.isOfDevices != isOfDevices { place = (0, 0) }
      work -= TurnBudget.Cost.key
    }
    if isDone {
      for word in words?.rest ?? [] { rows.append(.string(word), to: &output) }
    }
    return true
  }

  /// Ends the request, whatever keys are left.
  mutating func end() { isDone = true }

  /// The next device whose id matches; `nil` as in ``next(in:work:)``.
  mutating func nextDevice(in registry: Registry, work: inout Int) -> Int? {
    while work > 0 {
      guard place.device < registry.deviceNumbers.count else {
        isDone = true
        return nil
      }
      let number = registry.deviceNumbers[place.device]
      place.device += 1
      work -= TurnBudget.Cost.key
      if pattern.matches(registry.id(ofDevice: number)) { return number }
    }
    return nil
  }

  /// The next key that matches; `nil` when `work` is used up, or at the end, where ``isDone`` is
  /// set.
  mutating func next(in registry: Registry, work: inout Int) -> KeyIndex? {
    while work > 0, !isDone {
      guard place.device < registry.deviceNumbers.count else {
        isDone = true
        return nil
      }
      let members = registry.indices(ofDevice: registry.deviceNumbers[place.device])
      guard place.property < members.count else {
        place = (place.device + 1, 0)
        work -= 1
        continue
      }
      let key = KeyIndex(members[place.property])
      place.property += 1
      work -= TurnBudget.Cost.key
      if pattern.matches(registry[key].key) { return key }
    }
    return nil
  }
}

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
