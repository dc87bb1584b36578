// Settle
// SPDX-License-Identifier: Apache-2.0

package import Durability
import LastOut

/// How logs are cut into frames and kept short.
package struct LogSettings: Sendable {
  /// How many rows a frame has at most.
  package var rowsPerFrame = 512
  /// How many bytes of values a frame has at most, unless one alone has more; the engine takes 1 MB.
  package var bytesPerFrame = 256 << 10
  /// How many values and removals may be appended before a snapshot; for each value in the log, two
  /// more.
  ///
  /// A new owner reads them, one frame after the other.
  package var longAfter = 64
  /// How many entries of all logs are kept behind a snapshot.
  ///
  /// The engine reads a part of its files again for each entry, if it has removed others from it
  /// and was restarted since (seen with nats-server 2.9.10): entries are removed from parts that
  /// nobody reads.
  package var keptBehind: UInt64 = 32_768

  package init() {}

  /// The rows of as many frames as they need.
  func parts(of rows: [LogFrame.Row]) -> [[LogFrame.Row]] {
    var parts: [[LogFrame.Row]] = []
    var bytes = 0
    for row in rows {
      let size = row.key.utf8.count + row.content.bytes.count
      if let last = parts.last, last.count < rowsPerFrame, bytes + size <= bytesPerFrame {
        parts[parts.count - 1].append(row)
        bytes += size
      } else {
        parts.append([row])
        bytes = size
      }
    }
    return parts
  }
}

/// The log of one partition, as its owner keeps it.
struct PartitionLog: Sendable {
  enum Phase: Hashable, Sendable {
    /// Its end is being read, to claim it there.
    case finding
    case claiming
    /// What earlier owners left is being read, up to the claim.
    case loading(through: UInt64)
    case open
  }

  /// A frame that waits to be appended.
  struct Waiting: Sendable {
    var frame: LogFrame
    /// Whether the piece of work in progress waits for it.
    var isWork: Bool
  }

  /// A value in the log, with what its age is calculated from.
  struct Live: Sendable {
    var content: JournalContent
    var ttl: Duration
    /// When it was accepted, in milliseconds of this machine's boot clock.
    var acceptedAt: Int64
    /// Grows in the order of acceptance.
    var place: Int

    /// `age` of the row is counted back from `clock`.
    init(_ row: LogFrame.Row, place: Int, _ clock: JournalClock) {
      self.place = place
      content = row.content
      ttl = row.ttl
      acceptedAt = clock.stamps.bootMilliseconds - row.age.wholeMilliseconds
    }

    func row(_ key: String, _ clock: JournalClock) -> LogFrame.Row {
      LogFrame.Row(
        key: key,
        content: content,
        age: .milliseconds(max(0, clock.stamps.bootMilliseconds - acceptedAt)),
        ttl: ttl
      )
    }
  }

  let epoch: UInt64
  let settings: LogSettings
  var phase = Phase.finding
  /// Whether the queue has what the log holds: work before that knows nothing of this partition.
  var isAdopted = false
  /// Its last frame.
  var last = Predecessor.none
  /// Whether an append without an answer may have moved ``last``: it is read first, so that the
  /// engine need not refuse the next one.
  var isUncertain = false
  /// How often the engine has refused the first frame of ``waiting``.
  var refusals = 0
  /// Whether an operation has no answer yet.
  var isBusy = false
  /// Whether that is the append of the first frame of ``waiting``.
  var isAppending = false
  /// Whether it is the append of a frame that does not wait any more: its answer says only that the
  /// end of the log may have moved.
  var isOutdated = false
  /// Whether its end was before ``last``, and what it holds waits to be appended there: the engine has
  /// lost frames, unless it answered with an older end.
  var isShort = false
  /// When a failed operation of ``Phase/finding``, or of what follows, is repeated.
  var retryAt: Moment?
  var waiting: [Waiting] = []
  /// The values in the log.
  private(set) var live: [String: Live] = [:]
  /// How many values were ever held.
  private(set) var places = 0
  /// How many values and removals were appended since the last snapshot.
  var appended = 0
  /// Where the snapshot that is being appended begins; 0 for none.
  var snapshotStart: UInt64 = 0
  /// Where the newest complete snapshot begins; 0 for none.
  var base: UInt64 = 0
  /// Frames before this one are removed next; 0 for none.
  var purgesBefore: UInt64 = 0

  /// Whether a snapshot would be much shorter than what was appended.
  var isLong: Bool { appended > settings.longAfter + 2 * live.count }

  /// The frames of a snapshot of everything in the log.
  func snapshot(_ clock: JournalClock) -> [LogFrame] {
    let rows = live.sorted { $0.value.place < $1.value.place }.map { $0.value.row($0.key, clock) }
    let parts = rows.isEmpty ? [[]] : settings.parts(of: rows)
    return parts.enumerated().map { part, rows in
      LogFrame(kind: .snapshot(part: part, count: parts.count), epoch: epoch, puts: rows)
    }
  }

  /// The frames of some changes.
  func changes(puts: [LogFrame.Row], removals: [String]) -> [LogFrame] {
    let parts = settings.parts(of: puts)
    let size = settings.rowsPerFrame
    let count = max(parts.count, (removals.count + size - 1) / size)
    return (0..<count).map { part in
      LogFrame(
        kind: .changes,
        epoch: epoch,
        puts: part < parts.count ? parts[part] : [],
        removals: Array(removals.dropFirst(part * size).prefix(size))
      )
    }
  }

  /// Drops the frames that wait; the engine may have the first one already.
  mutating func dropWaiting() {
    waiting = []
    isShort = false
    isOutdated = isAppending
  }

  /// A frame is stored at `sequence`.
  mutating func stored(_ frame: LogFrame, at sequence: UInt64, _ clock: JournalClock) {
    last = Predecessor(revision: sequence, count: last.count &+ 1)
    appended += frame.puts.count + frame.removals.count
    for key in frame.removals { live[key] = nil }
    for row in frame.puts { hold(row, clock) }
  }

  /// The log holds a value, the newest of all.
  mutating func hold(_ row: LogFrame.Row, _ clock: JournalClock) {
    places += 1
    live[row.key] = Live(row, place: places, clock)
  }

  /// The log will hold these values, in order, and no others.
  mutating func replaceHeld(by rows: [LogFrame.Row], _ clock: JournalClock) {
    live = [:]
    for row in rows { hold(row, clock) }
  }
}

/// One entry in the log of a partition: the log is read from its newest snapshot, and what is left
/// after the last frame is what a new owner must send.
package struct LogFrame: Hashable, Sendable {
  /// A value that is accepted and not sent.
  package struct Row: Hashable, Sendable {
    package var key: String
    /// Opaque here.
    package var content: JournalContent
    /// How long before this frame was written the value was accepted.
    package var age: Duration
    /// How long after its acceptance it may be sent.
    package var ttl: Duration

    package init(key: String, content: JournalContent, age: Duration, ttl: Duration) {
      self.key = key
      self.content = content
      self.age = age
      self.ttl = ttl
    }
  }

  package enum Kind: Hashable, Sendable {
    /// A new owner; frames of earlier ones are refused from here on.
    case claim(member: String)
    /// What has changed.
    case changes
    /// One of `count` frames that together replace everything before the first of them.
    case snapshot(part: Int, count: Int)
  }

  package var kind: Kind
  /// The owner's.
  package var epoch: UInt64
  /// Counts the frames of the log, from 1.
  package var number: UInt64
  /// Where the newest complete snapshot before this frame begins; 0 for none.
  ///
  /// Nobody reads what is before it. After an election, it may have another number.
  package var base: UInt64
  package var puts: [Row]
  package var removals: [String]

  /// Whether it is a part of a snapshot.
  var isSnapshot: Bool { if case .snapshot = kind { true } else { false } }

  package init(
    kind: Kind,
    epoch: UInt64,
    number: UInt64 = 0,
    base: UInt64 = 0,
    puts: [Row] = [],
    removals: [String] = []
  ) {
    self.kind = kind
    self.epoch = epoch
    self.number = number
    self.base = base
    self.puts = puts
    self.removals = removals
  }
}

/// A frame as the engine has it.
package struct StoredFrame: Hashable, Sendable {
  /// Its place in the engine's stream, from 1.
  package var sequence: UInt64
  /// When it was stored, in nanoseconds by the engine's clock.
  package var storedAt: Int64
  package var frame: LogFrame

  /// What the next one follows.
  var asPredecessor: Predecessor { Predecessor(revision: sequence, count: frame.number) }

  package init(sequence: UInt64, storedAt: Int64, frame: LogFrame) {
    self.sequence = sequence
    self.storedAt = storedAt
    self.frame = frame
  }
}

/// What a log holds after some of its frames.
package struct LogContents: Sendable {
  /// A value with the place of the frame that has it.
  package struct Held: Sendable {
    package var row: LogFrame.Row
    package var storedAt: Int64
    /// Orders the values of a log.
    package var place: Int
  }

  package private(set) var rows: [String: Held] = [:]
  private var count = 0
  /// The frames of a snapshot that is not complete; a crash may have cut it short.
  private var parts: [StoredFrame] = []
  /// Whether there was a complete snapshot: what is before it does not matter.
  private(set) var hasSnapshot = false

  package init() {}

  /// The values in the order in which they were stored.
  package var ordered: [Held] { rows.values.sorted { $0.place < $1.place } }

  /// Takes the next frame.
  package mutating func append(_ stored: StoredFrame) {
    guard case .snapshot(let part, let count) = stored.frame.kind else {
      parts = []
      return apply(stored)
    }
    if part == 0 { parts = [] }
    guard part == parts.count else { return parts = [] }
    parts.append(stored)
    guard parts.count == count else { return }
    hasSnapshot = true
    rows = [:]
    for part in parts { apply(part) }
    parts = []
  }

  private mutating func apply(_ stored: StoredFrame) {
    for key in stored.frame.removals { rows[key] = nil }
    for row in stored.frame.puts {
      count += 1
      rows[row.key] = Held(row: row, storedAt: stored.storedAt, place: count)
    }
  }
}
