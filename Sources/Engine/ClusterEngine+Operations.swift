// Settle
// SPDX-License-Identifier: Apache-2.0

package import Cluster
import JSON
import Operations

/// What ``Membership`` and ``PartitionLogs`` ask for.
extension ClusterEngine {
  // MARK: - Records

  /// Replaces a record if it is still the one given.
  package func write(
    _ key: RecordKey,
    _ record: ClusterRecord,
    after predecessor: Predecessor,
    _ done: @escaping (WriteOutcome) -> Void
  ) {
    api.publish(RecordCoding.bytes(record), to: subject(of: key), after: predecessor, done)
  }

  /// Reads a record from the leader; `found` is `nil` without an answer.
  package func read(
    _ key: RecordKey,
    _ done: @escaping (_ found: (record: ClusterRecord?, revision: UInt64)?) -> Void
  ) {
    api.last(of: subject(of: key), in: settings.records) { result in
      switch result {
      case .failure: done(nil)
      case .success(nil): done((nil, 0))
      case .success(let found?): done((RecordCoding.record(found.bytes, of: key), found.sequence))
      }
    }
  }

  private func subject(of key: RecordKey) -> String {
    settings.record(RecordCoding.token(key))
  }

  // MARK: - Logs

  /// Appends a frame if the log's last one is still the one given.
  package func append(
    _ frame: LogFrame,
    to partition: Partition,
    after predecessor: Predecessor,
    _ done: @escaping (WriteOutcome) -> Void
  ) {
    api.publish(FrameCoding.bytes(frame), to: log(of: partition), after: predecessor, done)
  }

  /// Reads the last frame of a log from the leader.
  package func readLast(_ partition: Partition, _ done: @escaping (LogEnd) -> Void) {
    api.last(of: log(of: partition), in: settings.log) { [unowned self] result in
      switch result {
      case .failure: done(.unknown)
      case .success(nil): done(.empty)
      case .success(let found?):
        guard let frame = frame(found, of: partition) else { return done(.unreadable) }
        done(.frame(frame))
      }
    }
  }

  /// Reads a log from `first` up to the frame at `last`, in order and without a gap.
  ///
  /// A consumer sends all frames at once. Where it is silent, they are asked for one by one.
  package func read(
    _ partition: Partition,
    from first: UInt64,
    through last: UInt64,
    _ done: @escaping (LogPart) -> Void
  ) {
    var frames: [StoredFrame] = []
    var reader: Consumer?
    func finish(_ result: LogPart) {
      guard let ending = reader else { return }
      reader = nil
      end(ending)
      done(result)
    }
    reader = consume(
      .from(first),
      of: log(of: partition),
      in: settings.log,
      onItem: { [unowned self] item in
        guard let frame = frame(item, of: partition) else { return finish(.unreadable) }
        frames.append(frame)
        if item.sequence >= last {
          finish(frames.last?.sequence == last ? .frames(frames) : .unknown)
        }
      },
      onLost: { [unowned self] in
        guard reader != nil else { return }
        reader = nil
        readNext(of: partition, from: first, through: last, after: [], done)
      }
    )
  }

  private func readNext(
    of partition: Partition,
    from sequence: UInt64,
    through last: UInt64,
    after frames: [StoredFrame],
    _ done: @escaping (LogPart) -> Void
  ) {
    api.next(of: log(of: partition), from: sequence, in: settings.log) { [weak self] result in
      guard let self, case .success(let item?) = result, item.sequence <= last else {
        return done(.unknown)
      }
      guard let frame = frame(item, of: partition) else { return done(.unreadable) }
      let frames = frames + [frame]
      if item.sequence == last { return done(.frames(frames)) }
      readNext(of: partition, from: item.sequence + 1, through: last, after: frames, done)
    }
  }

  /// Removes the frames before one.
  package func purge(_ partition: Partition, before first: UInt64) {
    let body: JSONValue = .object([
      "filter": .string(log(of: partition)), "seq": .integer(Int64(clamping: first)),
    ])
    // One that is not carried out is repeated with the next snapshot.
    api.call("STREAM.PURGE.\(settings.log)", body) { _ in }
  }

  private func log(of partition: Partition) -> String {
    "\(settings.prefix).log.\(partition.number)"
  }

  /// Reads a frame; what cannot be read is logged.
  private func frame(_ item: StreamAPI.Stored, of partition: Partition) -> StoredFrame? {
    if let frame = FrameCoding.frame(item.bytes) {
      return StoredFrame(sequence: item.sequence, storedAt: item.storedAt, frame: frame)
    }
    log.error(
      "The log of a partition has an entry that this version cannot read: it is given back",
      ["partition": "\(partition)", "version": item.bytes.first.map { "\($0)" } ?? "none"]
    )
    return nil
  }

  // MARK: - Other members

  /// What became of a message to another member.
  package enum Delivery {
    case received
    /// No such member is connected, or there is no connection: it was not received.
    case notReceived
    /// No answer: it may have been received, or may yet be.
    case unknown
  }

  /// Sends a message to another member, which confirms that it was received.
  package func send(
    _ bytes: [UInt8],
    to member: String,
    _ done: @escaping (Delivery) -> Void
  ) {
    let wasConnected = connection.isConnected
    let subject = "\(settings.prefix).member.\(RecordCoding.escaped(member))"
    api.requests.send(bytes, to: subject) { message in
      switch message {
      case nil: done(wasConnected ? .unknown : .notReceived)
      case let message?: done(message.status == "503" ? .notReceived : .received)
      }
    }
  }

  /// How large a message to other members may be, in bytes.
  package var largestMessage: Int { connection.largest - 1024 }

  /// Whether a server is connected.
  package var isConnected: Bool { connection.isConnected }

  /// Tells every other member something; one that is away misses it.
  package func broadcast(_ bytes: [UInt8]) {
    _ = connection.publish(bytes, to: "\(settings.prefix).events")
  }

  /// The server that is used; empty without one.
  package var server: String { connection.server }
}
