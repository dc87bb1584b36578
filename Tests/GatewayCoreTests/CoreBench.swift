// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import JSON
import LastOut
import Values

@testable import GatewayCore

/// A core with a blind (`position`, and a `button` whose STOP ends it), a light (`warmth` and `hue`
/// exclude each other) and a fan (a `speed` of 0 ends `swing`, which its state confirms), connected
/// to its broker, and its clock.
struct CoreBench: ~Copyable {
  var core: GatewayCore
  var now = Moment(nanoseconds: 1_000_000_000)
  /// The last message that was published.
  private var lastPublish: UInt64?
  /// The messages that the broker has not answered.
  private var unanswered: [UInt64] = []
  /// What a start would find on the disk, by key.
  private(set) var rows: [String: JournalEntry] = [:]
  /// The commit in progress.
  private var batch = JournalBatch()

  /// The boot of the process that stored the journal's entries, and of this one.
  static let boot = BootIdentifier(high: 1, low: 1)
  static let wallMilliseconds: Int64 = 1_800_000_000_000

  /// Whether the wall clock is right.
  var isClockSynchronised = true

  /// - Parameters:
  ///   - isJournalled: Whether accepted values are made durable.
  ///   - entries: What an earlier process left.
  ///   - fault: Why the journal's file cannot be opened; then ``fileOpens(with:)`` opens it.
  ///   - isShared: Whether the store is that of a cluster.
  ///   - devices: Instead of the blind, the light and the fan.
  ///   - lanes: The limits of their lanes.
  ///   - hasRetained: Whether the broker has sent nothing yet of what it retains.
  init(
    isJournalled: Bool = true,
    entries: [JournalEntry] = [],
    fault: JournalFault? = nil,
    isShared: Bool = false,
    devices: [Device] = Self.devices,
    lanes: [String: LaneLimits] = [:],
    hasRetained: Bool = false
  ) {
    var settings = GatewayCoreSettings()
    settings.commands.lanes = lanes
    core = GatewayCore(
      registry: Registry(devices),
      settings: settings,
      identifiers: CommandIdentifiers(wallMilliseconds: 0, now: now, session: 0)
    )
    if isJournalled {
      let contents = JournalContents(entries: entries)
      let plan = fault.map { JournalPlan(fault: $0, at: now) } ?? JournalPlan(contents: contents)
      core.openStore(plan, path: "journal.db", isShared: isShared)
    }
    core.isWatched = true
    connect(hasRetained: hasRetained)
  }

  /// The connection is made; the broker sends what it retains now or, with `hasRetained`, later.
  mutating func connect(hasRetained: Bool = false) {
    core.connectionChanged(isUp: true, at: now)
    if !hasRetained { core.retainedMessagesCompleted(at: now) }
  }

  private static var devices: [Device] {
    var button = property("button", kind: .action(["STOP", "OPEN"]), delay: 0)
    button.urgent = [.text("STOP")]
    button.ends = ["position"]
    var warmth = number("warmth")
    warmth.excludes = ["hue"]
    var speed = number("speed")
    speed.urgent = [.number(0)]
    speed.ends = ["swing"]
    var swing = number("swing")
    swing.state = StateSource(topic: "swing", value: .whole)
    swing.confirm = Confirmation()
    return [
      Device(id: "blind", name: "blind", properties: [number("position"), button]),
      Device(id: "light", name: "light", properties: [warmth, number("hue")]),
      Device(id: "fan", name: "fan", properties: [speed, swing]),
    ]
  }

  static func number(_ id: String, to maximum: Double = 100) -> Property {
    property(id, kind: .number(NumberRule(range: 0...maximum, step: 1)), delay: 300)
  }

  private static func property(_ id: String, kind: ValueKind, delay: Int) -> Property {
    Property(
      id: id,
      kind: kind,
      policy: Policy(delay: .milliseconds(delay)),
      command: .init(topic: "\(id)/set", payload: PayloadTemplate("$value"))
    )
  }

  mutating func set(_ key: String, _ value: Value, skipsQuiet: Bool = false) throws {
    let key = try core.registry.index(of: key)
    try core.change(.set(value), of: key, at: now, ChangeOptions(skipsQuiet: skipsQuiet))
  }

  mutating func pass(_ milliseconds: Int) { now = now.advanced(by: .milliseconds(milliseconds)) }

  /// The commit in progress ends: the disk has what it wrote.
  mutating func commitEnds() {
    for put in batch.puts { rows[put.key] = put }
    for key in batch.removals { rows[key] = nil }
    batch = JournalBatch()
    core.storeFinished(.done, at: now)
  }

  /// A bench of the next process after a crash at this moment.
  func crashed(devices: [Device] = Self.devices, hasRetained: Bool = false) -> CoreBench {
    let stamps = JournalStamps(
      boot: Self.boot,
      bootMilliseconds: 1000,
      wallMilliseconds: Self.wallMilliseconds
    )
    let entries = rows.values.sorted { $0.sequence < $1.sequence }.map { row in
      var entry = JournalEntry(
        key: row.key,
        sequence: row.sequence,
        value: [],
        origin: .stored(stamps),
        ttl: row.ttl
      )
      entry.content = row.content
      return entry
    }
    return CoreBench(entries: entries, devices: devices, hasRetained: hasRetained)
  }

  /// The journal's file, which could not be opened so far, opens and holds `entries`.
  mutating func fileOpens(with entries: [JournalEntry]) {
    pass(500)
    _ = step()
    core.storeFinished(.reopened(JournalContents(entries: entries)), at: now)
  }

  /// The broker acknowledges the last message that was published.
  mutating func acknowledge() {
    guard let lastPublish else { return }
    core.commandFinished(lastPublish, .acknowledged, at: now)
  }

  /// The broker acknowledges all messages that were published.
  mutating func acknowledgeAll() { finishAll(.acknowledged) }

  /// The connection ends before the broker has answered, and is made again.
  mutating func loseAll() {
    core.connectionChanged(isUp: false, at: now)
    finishAll(.lost)
    connect()
  }

  private mutating func finishAll(_ outcome: PublishOutcome) {
    for token in unanswered { core.commandFinished(token, outcome, at: now) }
    unanswered = []
  }

  /// The phase of the last command of a key.
  func phase(of key: String) throws -> Phase? {
    core.status(try core.registry.index(of: key)).phase
  }

  /// The effects of one step, in words; the clocks are read when the core asks for it.
  mutating func step() -> [String] {
    var host = HostState()
    host.room = 1
    var effects: [String] = []
    while let effect = core.nextEffect(at: now, host: host) {
      effects.append(words(effect))
      if case .publish(let publish) = effect {
        lastPublish = publish.token
        unanswered.append(publish.token)
      }
      if case .readClock = effect { core.clockRead(clock) }
      if case .write(.commit(let work)) = effect { batch = work }
    }
    return effects
  }

  private var clock: JournalClock {
    JournalClock(
      moment: now,
      stamps: JournalStamps(
        boot: Self.boot,
        bootMilliseconds: 2000,
        wallMilliseconds: Self.wallMilliseconds
      ),
      isSynchronised: isClockSynchronised
    )
  }

  /// What one step publishes of commands.
  mutating func published() -> [String] { step().filter { $0.hasPrefix("publish") } }

  private func words(_ effect: Effect) -> String {
    switch effect {
    case .write: "write"
    case .publish(let publish):
      "publish \(publish.topic) \(String(decoding: publish.payload, as: UTF8.self))"
    case .emit(let event): "emit \(event.phase) \(core.registry[event.key].key)"
    case .publishState: "state"
    case .log(let entry):
      "log " + entry.fields.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
    case .resumed(let value): "resumed \(core.registry[value.key].key)"
    case .definitionsReplaced: "replaced"
    case .reloaded: "reloaded"
    case .end: "end"
    default: "other"
    }
  }
}
