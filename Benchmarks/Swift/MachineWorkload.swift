// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Values

/// The cost of a plain MQTT set after its topic and payload are read: no origin, no watchers.
struct MachineWorkload: ~Copyable {
  private var machine: CommandStateMachine
  private let order: [Int32]
  private var now = Moment(nanoseconds: 1)

  init(names: Names) {
    let devices = (0..<names.count).map { number in
      var level = Property(
        id: "level",
        kind: .number(NumberRule(range: 0...100_000_000, step: 1)),
        policy: Policy(delay: .milliseconds(300), maxWait: .seconds(2)),
        command: CommandEndpoint(
          topic: names.text(number),
          payload: PayloadTemplate(.string(PayloadTemplate.placeholder))
        )
      )
      level.ttl = .seconds(60)
      return Device(id: "device\(number)", name: "Device \(number)", properties: [level])
    }
    machine = CommandStateMachine(registry: Registry(devices))
    machine.connectionChanged(isUp: true, at: now)
    order = names.order
    change(rounds: 1)
  }

  var changes: UInt64 { machine.log.statistics.changes }

  /// Sets every key once per round, through the complete input path of the machine.
  mutating func change(rounds: Int) {
    for round in 0..<rounds {
      for place in order.indices {
        let value = Value.number(Double(round & 1023))
        try? machine.change(.set(value), of: KeyIndex(order[place]), at: now)
        if place % CoreWorkload.changesPerWake == 0 { wake() }
      }
    }
  }

  /// The owner's work after a batch: it dequeues the events.
  private mutating func wake() {
    machine.log.events.removeAll(keepingCapacity: true)
    machine.log.statuses.changedKeys.removeAll(keepingCapacity: true)
    now.nanoseconds += 1000
  }
}

/// The core's part of the same: changes by number, with a value of the usual size.
struct KeyedWorkload: ~Copyable {
  private var core: LastOutCore<Int>
  private let order: [Int32]
  private var now = Moment(nanoseconds: 1)

  init(names: Names) {
    core = LastOutCore(
      policy: Policy(delay: .milliseconds(300), maxWait: .seconds(2)),
      capacity: names.count
    )
    order = names.order
    change(rounds: 1)
  }

  var pending: Int { core.pendingCount }

  mutating func change(rounds: Int) {
    for round in 0..<rounds {
      for place in order.indices {
        core.enqueue(round, for: KeyIndex(order[place]), at: now)
        if place % CoreWorkload.changesPerWake == 0 { now.nanoseconds += 1000 }
      }
    }
  }
}
