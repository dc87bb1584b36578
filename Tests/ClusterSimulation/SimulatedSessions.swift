// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import LastOut
import LastOutTesting

/// The broker: one session for each partition, which belongs to the client that connected last.
final class SimulatedSessions {
  /// A connection of a session.
  struct Connection: Hashable {
    let partition: Partition
    let number: Int
  }

  private struct Session {
    var connection: Connection?
    var onEnd: (() -> Void)?
    /// The greatest epoch of an owner whose message was taken.
    var epoch: UInt64 = 0
    /// The greatest epoch of an owner that has connected.
    var newest: UInt64 = 0
    /// The epoch of the owner whose connection it is, or was last.
    var holder: UInt64 = 0
    /// When the newest message arrives that was sent over it.
    var arrival = Moment.zero
    /// The owners whose connection a newer one has ended.
    var ousted: Set<UInt64> = []
  }

  private struct StaleOwner: Hashable {
    let partition: Partition
    let epoch: UInt64
  }

  private let time: VirtualTime
  /// How often owners connected after a newer one.
  private var staleConnections: [StaleOwner: Int] = [:]
  private var sessions: [Partition: Session] = [:]
  private var numbers = 0
  private var cuts: [String: Moment] = [:]
  private(set) var takeovers = 0
  /// Receives each message that the broker takes.
  var onMessage: ((_ payload: [UInt8], _ topic: String) -> Void)?
  /// Receives what must not happen.
  var onBreach: ((String) -> Void)?

  init(_ time: VirtualTime) { self.time = time }

  func cut(_ member: String, for duration: Duration) {
    cuts[member] = max(cuts[member] ?? .zero, time.now.advanced(by: duration))
  }

  func heal() { cuts = [:] }

  private func reaches(_ member: String) -> Bool { (cuts[member] ?? .zero) <= time.now }

  /// The greatest epoch of an owner that has connected.
  func newestOwner(of partition: Partition) -> UInt64 { sessions[partition]?.newest ?? 0 }

  /// Connects once `delay` has passed; `onEnd` is called when the connection ends, by whatever.
  func connect(
    _ partition: Partition,
    by member: String,
    epoch: UInt64,
    after delay: Duration,
    onConnected: @escaping (Connection) -> Void,
    onEnd: @escaping () -> Void
  ) {
    time.plan(after: delay + .milliseconds(time.random.within(1...20))) { [self] in
      guard reaches(member) else {
        time.plan(within: 500...2000) { onEnd() }
        return
      }
      noteOwner(of: partition, epoch: epoch)
      end(partition)
      numbers += 1
      let connection = Connection(partition: partition, number: numbers)
      sessions[partition, default: Session()].connection = connection
      sessions[partition]?.onEnd = onEnd
      sessions[partition]?.holder = epoch
      time.plan(within: 1...20) {
        // Its end was reported before.
        guard self.sessions[partition]?.connection == connection else { return }
        onConnected(connection)
      }
    }
  }

  /// Checks that an owner may connect.
  ///
  /// One that was asleep between its permission and this may do so once after a newer one, and gets
  /// no other permission. One whose connection a newer one has ended gets none at all: the renewal
  /// for it cannot be stored after its eviction.
  private func noteOwner(of partition: Partition, epoch: UInt64) {
    let newest = sessions[partition]?.newest ?? 0
    if sessions[partition]?.ousted.contains(epoch) ?? false {
      onBreach?("an owner takes back the session of \(partition), which a newer one has taken")
    }
    if let session = sessions[partition], session.connection != nil, session.holder < epoch {
      sessions[partition]?.ousted.insert(session.holder)
    }
    guard epoch < newest else {
      sessions[partition, default: Session()].newest = epoch
      return
    }
    let owner = StaleOwner(partition: partition, epoch: epoch)
    staleConnections[owner, default: 0] += 1
    if staleConnections[owner] ?? 0 > 1 {
      onBreach?("an owner before the newest takes the session of \(partition) again")
    }
  }

  /// Ends the connection of a session from the broker's side.
  func end(_ partition: Partition) {
    guard let onEnd = sessions[partition]?.onEnd else { return }
    if sessions[partition]?.connection != nil { takeovers += 1 }
    sessions[partition]?.connection = nil
    sessions[partition]?.onEnd = nil
    time.plan(within: 1...50) { onEnd() }
  }

  /// Ends a connection from the client's side; nothing is reported.
  func close(_ connection: Connection) {
    guard sessions[connection.partition]?.connection == connection else { return }
    sessions[connection.partition]?.connection = nil
    sessions[connection.partition]?.onEnd = nil
  }

  func endAll() { for partition in sessions.keys.sorted() { end(partition) } }

  /// A member's machine is gone, or its link: its connections end.
  func endAll(of connections: [Connection]) {
    for connection in connections.sorted(by: { $0.number < $1.number })
    where sessions[connection.partition]?.connection == connection {
      end(connection.partition)
    }
  }

  /// Publishes over a connection; `onAnswer` is called if the broker took the message.
  func publish(
    _ payload: [UInt8],
    to topic: String,
    over connection: Connection,
    by member: String,
    epoch: UInt64,
    after delay: Duration,
    onAnswer: @escaping () -> Void
  ) {
    // A connection keeps the order of its messages.
    let moment = max(time.now.advanced(by: delay), sessions[connection.partition]?.arrival ?? .zero)
    sessions[connection.partition]?.arrival = moment
    time.plan(at: moment) { [self] in
      guard let session = sessions[connection.partition], session.connection == connection else {
        return
      }
      guard reaches(member) else {
        // What is not acknowledged in time ends the connection, as TCP and MQTT's pings do.
        time.plan(within: 500...3000) { self.endAll(of: [connection]) }
        return
      }
      if epoch < session.epoch {
        onBreach?("partition \(connection.partition) is driven by an owner before the newest")
      }
      sessions[connection.partition]?.epoch = epoch
      onMessage?(payload, topic)
      time.plan(within: 1...30) { onAnswer() }
    }
  }
}
