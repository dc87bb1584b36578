// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Durability
import Engine
import FaultySync
import Glibc
import Journal
import LastOut
import Operations
import TestBroker
import Testing

/// Which store a rule is checked on.
enum StoreKind: CaseIterable {
  case journal
  case cluster
}

/// A store, one owner after the other, with the calls that the gateway makes.
final class StoreFixture {
  /// What one owner has.
  final class Owner {
    let store: any ValueStore
    /// What earlier owners left, with what is left of each value's time to live; and what has
    /// expired.
    fileprivate(set) var found: [(key: String, value: String, left: Duration)] = []
    fileprivate(set) var expired: [String] = []
    /// Whether a newer owner has taken over.
    fileprivate(set) var isLost = false
    /// How much its clock was found to be ahead of the engine's.
    fileprivate(set) var clockDifferences: [Duration] = []
    fileprivate var waker: Waker?

    fileprivate init(_ store: any ValueStore) { self.store = store }
  }

  private struct Bytes: JournalValue {
    var bytes: [UInt8]
  }

  private let kind: StoreKind
  private let harness: EngineHarness
  private let folder: String
  private var server: NATSServer?
  private var engines: [ClusterEngine] = []
  private var partitionStores: [PartitionStore] = []
  private var epoch: UInt64 = 0
  private var written = 0
  private let timer: LoopTimer
  private static let partition = Partition(0)

  init(_ kind: StoreKind) throws {
    self.kind = kind
    harness = try EngineHarness()
    timer = try harness.loop.makeTimer {}  // A batch of events, after which stores go on.
    folder = try TemporaryFolder.make("settle-store")
    if kind == .cluster { server = try NATSServer() }
  }

  deinit {
    for engine in engines { engine.close() }
    TemporaryFolder.remove(folder)
  }

  // MARK: - Owners

  /// A new owner, which has read what earlier ones left.
  ///
  /// - Parameter clockError: How much the owner's wall clock is ahead, in a cluster.
  /// - Returns: The owner.
  /// - Throws: Where the store belongs to another process.
  func open(clockError: Duration = .zero) throws -> Owner {
    switch kind {
    case .journal: try openJournal()
    case .cluster: try openPartition(clockError)
    }
  }

  private func openJournal() throws -> Owner {
    try #require(faulty_install() == 0)
    let waker = try harness.loop.makeWaker {}
    let thread = try JournalThread(
      path: folder + "/journal.db",
      vfs: "faulty",
      decode: { Bytes(bytes: $0) },
      onResult: { waker.wake() }
    )
    let owner = Owner(thread)
    owner.waker = waker
    read(thread.plan, to: owner)
    return owner
  }

  private func openPartition(_ clockError: Duration) throws -> Owner {
    let server = try #require(server)
    let engine = try harness.ready(
      EngineHarness.settings(server, partitions: 1),
      member: "m\(epoch)"
    )
    engines.append(engine)
    let readClock = {
      var clock = SystemClock.read()
      clock.stamps.wallMilliseconds += clockError.components.seconds * 1000
      return clock
    }
    let store = PartitionStore(engine, member: "m\(epoch)", clock: readClock) { _ in
      Self.partition
    }
    let owner = Owner(store)
    store.onClockDifference = { owner.clockDifferences.append($0) }
    var entries: [JournalEntry]?
    store.onOpened = { [unowned store] partition, epoch, found in
      entries = found
      store.adopted(partition, epoch: epoch)
    }
    store.onLost = { _, _ in owner.isLost = true }
    store.onClosing = { [unowned store] in
      store.close(Self.partition)
      store.close()
    }
    partitionStores.append(store)
    epoch += 1
    store.open(Self.partition, epoch: epoch)
    try run { entries != nil }
    var plan = JournalPlan(contents: JournalContents())
    plan.takeOver(entries ?? [], at: EventLoop.now())
    read(plan, to: owner)
    return owner
  }

  private func read(_ found: JournalPlan, to owner: Owner) {
    var plan = found
    plan.decideReplay(SystemClock.read())
    for event in plan.dequeueEvents() {
      switch event {
      case .replay(let entry, let left):
        owner.found.append((entry.key, String(decoding: entry.value, as: UTF8.self), left))
      case .expired(let entry, _): owner.expired.append(entry.key)
      case .durable, .memoryOnly, .recovered, .setAside: break
      }
    }
  }

  /// Ends an owner in order.
  func close(_ owner: Owner) throws {
    owner.store.beginClosing()
    try run { owner.store.isClosed }
  }

  // MARK: - Work

  /// Does a piece of work; `nil` when the owner is told that it owns nothing any more.
  func perform(_ work: JournalWork, by owner: Owner) throws -> JournalResult? {
    owner.store.submit(work)
    var results: [JournalResult] = []
    try run {
      results += owner.store.dequeueResults()
      return !results.isEmpty || owner.isLost
    }
    return owner.isLost ? nil : results.first
  }

  /// Writes values, each with the time to live of an hour.
  @discardableResult
  func write(_ values: [(key: String, value: String)], by owner: Owner) throws -> Bool {
    let entries = values.enumerated().map { Self.entry($1.key, $1.value, written + $0 + 1) }
    written += values.count
    let batch = JournalBatch(puts: entries)
    if case .done? = try perform(.commit(batch), by: owner) { return true }
    return false
  }

  static func entry(
    _ key: String,
    _ value: String,
    _ sequence: Int,
    age: Duration = .zero,
    ttl: Duration = .seconds(3600)
  ) -> JournalEntry {
    JournalEntry(
      key: key,
      sequence: UInt64(sequence),
      value: Array(value.utf8),
      origin: .accepted(at: EventLoop.now().advanced(by: .zero - age)),
      ttl: ttl
    )
  }

  // MARK: - Faults

  /// Lets every write fail.
  func breakDown() {
    switch kind {
    case .journal: unsafe faulty_fail(folder + "/journal.db", 0, 13)  // SQLITE_FULL
    case .cluster: server?.kill()
    }
  }

  func repair() throws {
    switch kind {
    case .journal: unsafe faulty_fail(folder + "/journal.db", 0, 0)
    case .cluster:
      try server?.start()
      let engine = try #require(engines.last)
      try run { engine.isConnected }
    }
  }

  /// Runs the loop until a condition holds.
  private func run(_ condition: @escaping () -> Bool) throws {
    let stores = partitionStores
    try #require(
      harness.run {
        for store in stores { while store.advance(to: EventLoop.now()) {} }
        if let due = stores.compactMap(\.nextDeadline).min() { self.timer.arm(at: due) }
        return condition()
      }
    )
  }
}
