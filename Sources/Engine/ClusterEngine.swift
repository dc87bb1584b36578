// Settle
// SPDX-License-Identifier: Apache-2.0

package import Cluster
import JSON
import LastOut
package import Operations

/// The engine of a cluster: records and logs in streams of NATS JetStream.
///
/// It carries out what ``Membership`` and ``PartitionLogs`` ask, and decides nothing. Every call
/// returns at once; its answer comes on the event loop, with `unknown` or `nil` after two seconds.
package final class ClusterEngine {
  /// The streams are there and agree with the settings.
  package var onReady: (() -> Void)?
  /// The cluster cannot be used with these settings.
  package var onRefusal: ((EngineRefusal) -> Void)?
  /// The engine cannot be used at the moment, and why; `nil` when it can again.
  package var onProblem: ((String?) -> Void)?
  /// A record, its value and its revision; the same is reported again and again.
  package var onRecord: ((RecordKey, ClusterRecord?, UInt64) -> Void)?
  /// Every record was reported.
  package var onRecordsRead: (() -> Void)?
  /// A message from another member, which has been confirmed.
  package var onMessage: (([UInt8]) -> Void)?
  /// What another member tells all.
  package var onBroadcast: (([UInt8]) -> Void)?

  package private(set) var isReady = false
  /// Why the engine cannot be used; `nil` while it can.
  package private(set) var problem: String? {
    didSet { if problem != oldValue { onProblem?(problem) } }
  }

  let settings: EngineSettings
  let connection: NATSConnection
  let api: StreamAPI
  private let loop: EventLoop
  let log: Logger
  /// Random, so that no two processes have the same.
  private let name: String
  private let inbox: String
  private let address: String
  private var timer: LoopTimer?
  private var watch: Consumer?
  private var reader: RecordReader?
  private var consumers: [String: Consumer] = [:]
  private var consumerCount = 0
  /// Several, so that signs of life of an earlier watch are not taken for those of this one.
  private static let watchSubjects = 8

  /// - Throws: When libnats is missing.
  package init(
    _ settings: EngineSettings,
    member: String,
    loop: EventLoop,
    log: Logger
  ) throws(EngineRefusal) {
    self.settings = settings
    self.loop = loop
    self.log = log
    let name = String(UInt64.random(in: 0...UInt64.max), radix: 36)
    let inbox = "_INBOX.settle.\(name)"
    (self.name, self.inbox) = (name, inbox)
    address = "\(settings.prefix).member.\(RecordCoding.escaped(member))"
    do throws(NATSProblem) {
      connection = try NATSConnection(
        settings.connection,
        subjects: ["\(inbox).answer.*", address, "\(settings.prefix).events", "\(inbox).read"]
          + (0..<Self.watchSubjects).map { "\(inbox).watch\($0)" },
        loop: loop
      )
    } catch {
      throw EngineRefusal(error.description)
    }
    do throws(OperationsError) {
      api = StreamAPI(
        requests: try Requests(
          connection,
          inbox: "\(inbox).answer",
          patience: settings.patience,
          loop: loop
        )
      )
      timer = try loop.makeTimer(named: "the cluster's engine") { [unowned self] in advance() }
    } catch {
      throw EngineRefusal(error.description)
    }
    connection.onMessage = { [unowned self] in receive($0) }
    connection.onChange = { [unowned self] isUp, problem in connectionChanged(isUp, problem) }
  }

  /// Connects, makes the streams where they are missing, and reads the records.
  package func start() { connection.start() }

  package func close() {
    for consumer in consumers.values { consumer.end() }
    consumers = [:]
    reader?.end()
    connection.close()
  }

  private func connectionChanged(_ isUp: Bool, _ reason: String?) {
    guard isUp else {
      let words = reason.map { ": \(settings.connection.words($0))" }
      problem = "no connection to the engine" + (words ?? "")
      return
    }
    if isReady {
      problem = nil
      if let watch { end(watch) }
      watch = nil
    }
    advance()
  }

  /// Goes on with what is missing.
  private func advance() {
    guard connection.isConnected else { return }
    if isReady { if watch == nil { watchRecords() } } else { prepare() }
  }

  private func receive(_ message: NATSConnection.Message) {
    if api.requests.receive(message) { return }
    if message.subject == address {
      if let reply = message.reply { _ = connection.publish([], to: reply) }
      onMessage?(message.bytes)
    } else if message.subject == "\(settings.prefix).events" {
      onBroadcast?(message.bytes)
    } else {
      deliver(message)
    }
  }

  // MARK: - Consumers

  /// Hands a message to the consumer that sent it; one that has ended may have sent more.
  ///
  /// A message has the subject that it was stored with, and its consumer's name in its reply
  /// subject.
  private func deliver(_ message: NATSConnection.Message) {
    if let name = Consumer.Facts(message.reply)?.name {
      consumers[String(name)]?.receive(message)
    } else if let watch, message.subject == watch.subject {
      watch.receive(message)
    }
  }

  /// Reads a stream, from now on until it ends.
  func consume(
    _ start: Consumer.Start,
    of filter: String,
    in stream: String,
    onItem: @escaping (StreamAPI.Stored) -> Void,
    onLost: @escaping () -> Void
  ) -> Consumer {
    consumerCount += 1
    let name = "\(name)-\(consumerCount)"
    let consumer = Consumer(
      start,
      of: filter,
      in: stream,
      api,
      named: name,
      // A consumer sends only where someone has subscribed to exactly that subject.
      to: start == .new ? "\(inbox).watch\(consumerCount % Self.watchSubjects)" : "\(inbox).read",
      loop: loop,
      onItem: onItem,
      onLost: { [unowned self] in
        consumers[name] = nil
        onLost()
      }
    )
    consumers[name] = consumer
    return consumer
  }

  func end(_ consumer: Consumer) {
    consumer.end()
    consumers[consumer.name] = nil
  }

  /// Hears of new records as soon as they are stored.
  private func watchRecords() {
    watch = consume(
      .new,
      of: settings.record(">"),
      in: settings.records,
      onItem: { [unowned self] _ in reader?.wake() },
      onLost: { [unowned self] in
        watch = nil
        // Without a connection, the next one asks again.
        timer?.arm(at: EventLoop.now().advanced(by: .milliseconds(250)))
      }
    )
  }

  /// Reads all records from the leader, and what is new when the watch shows something.
  private func readRecords() {
    reader = RecordReader(
      api,
      of: settings.record(">"),
      in: settings.records,
      loop: loop,
      onItem: { [unowned self] in report($0) },
      onRead: { [unowned self] in onRecordsRead?() }
    )
    reader?.start()
  }

  private func report(_ item: StreamAPI.Stored) {
    let token = item.subject.dropFirst(settings.record("").count)
    guard let key = RecordCoding.key(token) else { return }
    onRecord?(key, RecordCoding.record(item.bytes, of: key), item.sequence)
  }

  /// The streams agree with the settings.
  func becomeReady() {
    isReady = true
    problem = nil
    onReady?()
    watchRecords()
    readRecords()
  }

  /// Something is in the way for now: it is said once, and tried again.
  func retry(_ reason: String) {
    problem = reason
    timer?.arm(at: EventLoop.now().advanced(by: .seconds(1)))
  }
}

/// Making the streams, and comparing the cluster's own record with the settings.
extension ClusterEngine {
  /// The version of what is stored.
  static let version: Int64 = 1
  /// For how long the engine remembers what a message follows, in nanoseconds: longer than one is
  /// under way, and short enough to be read quickly when a server starts.
  private static let memory: Int64 = 30_000_000_000
  /// A stream has this name and other settings.
  private static let otherSettings = 10058
  /// There are fewer servers than replicas, or one server only.
  private static let tooFewServers: Set<Int> = [10005, 10074]
  private static let noJetStream: Set<Int> = [503, 10039, 10076]

  /// Makes what is missing, one step after the other.
  func prepare() {
    guard connection.isConnected, !isReady else { return }
    let records = stream(settings.records, settings.record(">"), newestOnly: true)
    let log = stream(settings.log, "\(settings.prefix).log.*", newestOnly: false)
    create(settings.records, records) { [unowned self] in
      create(settings.log, log) { [unowned self] in writeClusterRecord() }
    }
  }

  private func stream(_ name: String, _ subject: String, newestOnly: Bool) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("name", .string(name)), .init("subjects", [.string(subject)]),
      .init("storage", "file"), .init("retention", "limits"),
      .init("discard", newestOnly ? "old" : "new"),
      .init("num_replicas", .integer(Int64(settings.replicas))), .init("max_consumers", -1),
      .init("max_msgs", -1), .init("max_bytes", -1), .init("max_age", 0),
      .init("duplicate_window", .integer(Self.memory)),
    ]
    if newestOnly { members.append(.init("max_msgs_per_subject", 1)) }
    return .object(members)
  }

  private func create(_ name: String, _ body: JSONValue, _ next: @escaping () -> Void) {
    api.call("STREAM.CREATE.\(name)", body) { [unowned self] result in
      switch result {
      case .success: next()
      case .failure(let problem) where problem.code == Self.otherSettings:
        refuse("the engine has a stream \(name) with other settings: was cluster.replicas changed?")
      case .failure(let problem) where Self.tooFewServers.contains(problem.code):
        retry(
          "the engine has fewer servers than cluster.replicas, which is \(settings.replicas):"
            + " \(problem.text)"
        )
      case .failure(let problem) where Self.noJetStream.contains(problem.code):
        retry("the server \(connection.server) has no JetStream, or no leader: \(problem.text)")
      case .failure(let problem): retry(problem.text)
      }
    }
  }

  private func writeClusterRecord() {
    let record: JSONValue = .object([
      "version": .integer(Self.version), "partitions": .integer(Int64(settings.partitions)),
      "hash": "fnv1a-64",
    ])
    let subject = settings.record("cluster")
    api.publish(JSONWriter.bytes(record), to: subject, after: .none) { [unowned self] outcome in
      switch outcome {
      case .stored: becomeReady()
      case .conflict: compareClusterRecord(subject)
      case .unknown: retry(StreamAPI.Problem.noAnswer.text)
      }
    }
  }

  private func compareClusterRecord(_ subject: String) {
    api.last(of: subject, in: settings.records) { [unowned self] result in
      guard case .success(let found) = result, let found,
        let json = try? JSONParser.parse(found.bytes.span)
      else { return retry(StreamAPI.Problem.noAnswer.text) }
      guard case .integer(Self.version)? = json["version"] else {
        let version = json["version"].map { JSONWriter.text($0) } ?? "none"
        return refuse(
          "the cluster \(settings.cluster) stores version \(version), this program \(Self.version)"
        )
      }
      guard case .integer(let partitions)? = json["partitions"],
        partitions == Int64(settings.partitions)
      else {
        let partitions = json["partitions"].map { JSONWriter.text($0) } ?? "none"
        return refuse(
          "the cluster \(settings.cluster) has \(partitions) partitions, the settings say"
            + " \(settings.partitions): correct cluster.partitions"
        )
      }
      becomeReady()
    }
  }

  private func refuse(_ text: String) { onRefusal?(EngineRefusal(text)) }
}

/// A cluster, and the servers of its engine.
package struct EngineSettings: Hashable, Sendable {
  /// The cluster's name.
  package var cluster: String
  package var connection: NATSSettings
  /// The same for the life of the cluster.
  package var partitions = 64
  /// How many servers keep each value.
  package var replicas = 3
  /// How long an answer is waited for.
  package var patience: Duration = .seconds(2)

  package init(cluster: String, connection: NATSSettings) {
    self.cluster = cluster
    self.connection = connection
  }

  /// The names of streams and subjects.
  var records: String { "settle-\(cluster)-records" }
  var log: String { "settle-\(cluster)-log" }
  var prefix: String { "settle.\(cluster)" }
  /// The subject of a record; `>` for all of them.
  func record(_ token: String) -> String { "\(prefix).records.\(token)" }
}

/// Why a gateway cannot be a member of the cluster.
package struct EngineRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = "cluster: \(description)" }
}

/// Reads a stream of records from its leader, in order: first everything, then what is new, when it
/// is woken and every half second.
///
/// A consumer is told at once, and only wakes this one. It may be led by another server than the
/// stream, which may number messages differently, and a write expects the leader's number.
final class RecordReader {
  private static let pace = Duration.milliseconds(500)
  /// How many sequence numbers a round reads again: a new leader may count less than the one
  /// before.
  private static let overlap: UInt64 = 16
  /// One round in so many reads everything: it may count less by any number.
  private static let roundsToAll = 10

  private let api: StreamAPI
  private let filter: String
  private let stream: String
  private var timer: LoopTimer?
  private var next: UInt64 = 1
  private var rounds = 0
  private var isReading = false
  /// Whether there is something new since the question that has no answer yet.
  private var isWoken = false
  private var hasReadAll = false
  private var isEnded = false
  /// Receives each record, some again and again.
  private let onItem: (StreamAPI.Stored) -> Void
  /// Called once, when every record was read.
  private let onRead: () -> Void

  init(
    _ api: StreamAPI,
    of filter: String,
    in stream: String,
    loop: EventLoop,
    onItem: @escaping (StreamAPI.Stored) -> Void,
    onRead: @escaping () -> Void
  ) {
    self.api = api
    self.filter = filter
    self.stream = stream
    self.onItem = onItem
    self.onRead = onRead
    timer = try? loop.makeTimer(named: "records of the cluster") { [unowned self] in
      rounds += 1
      next = rounds.isMultiple(of: Self.roundsToAll) ? 1 : next - min(next - 1, Self.overlap)
      read()
    }
  }

  func start() { read() }

  /// Something new is there.
  func wake() { if isReading { isWoken = true } else { read() } }

  func end() {
    isEnded = true
    timer?.arm(at: nil)
  }

  private func read() {
    guard !isReading, !isEnded else { return }
    isReading = true
    isWoken = false
    api.next(of: filter, from: next, in: stream) { [weak self] in self?.received($0) }
  }

  private func received(_ result: Result<StreamAPI.Stored?, StreamAPI.Problem>) {
    isReading = false
    guard !isEnded else { return }
    switch result {
    case .success(let item?):
      next = item.sequence + 1
      onItem(item)
      return read()
    case .success(nil):
      if isWoken { return read() }
      if !hasReadAll {
        hasReadAll = true
        onRead()
      }
    case .failure: break
    }
    timer?.arm(at: EventLoop.now().advanced(by: Self.pace))
  }
}
