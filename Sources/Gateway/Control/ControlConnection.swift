// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import Glibc
import JSON
import LastOut
import Operations

/// One client of the control socket: lines in, replies out, nothing waited for.
final class ControlConnection: Requester {
  /// How far the connection has come.
  private enum State {
    case open
    /// It ends when what waits is sent.
    case ending
    case ended
  }

  /// What becomes of the lines that have come.
  private enum Lines {
    /// There are none left.
    case none
    /// A turn takes them.
    case taken
    /// They wait for the next turn, or until the client has read its replies.
    case waiting
  }

  let number: UInt64
  let plainOrigin: ChangeOrigin
  var watches: [Watch] = []
  var recordings: [Recording] = []
  var onLine: ((LineFramer.Output, ControlConnection) -> Void)?
  /// Goes on with a request about many keys for so many units of work; the result is the work done.
  var onWalk: ((inout KeyWalk, _ limit: Int, _ output: inout [UInt8]) -> Int)?
  var onEnd: ((ControlConnection) -> Void)?
  /// Replies wait to be sent with ``flush(hasRoom:)``.
  var onUnsent: ((ControlConnection) -> Void)?
  /// All lines have been taken, so that the connection may end.
  var onInputEnd: (() -> Void)?
  /// Lines are left that wait for ``takeTurn()``.
  var onTurnWanted: ((ControlConnection) -> Void)?
  /// From now on the client has to end a line, or to read, by a deadline.
  var onDeadline: (() -> Void)?
  /// Since when the line that the client sends has not ended, or the last line to it is not sent.
  private(set) var unfinishedSince: Moment?
  /// When the client last sent something.
  private var heardAt: Moment
  private let descriptor: Int32
  private var framer: LineFramer
  private var watch: IOWatch?
  private var output = ControlOutput()
  /// The request about many keys that is being answered; later lines wait for its end.
  private var walk: KeyWalk?
  /// The work that a turn of the loop does for all clients.
  private let budget: TurnBudget
  /// Since when the client has read nothing of what waits; the descriptor is watched for room.
  private(set) var stalledSince: Moment?
  /// Since when the client has had requests that wait, or replies that it has not read.
  private(set) var behindSince: Moment?
  private var state = State.open
  private var openWaits = 0
  /// Changes that were accepted and whose answer was not sent yet.
  private var owed = 0
  /// Too much waits for the disk: no further request is read while replies to this client do.
  ///
  /// A client that sends faster than the disk writes must slow down before changes are refused.
  var isDiskBehind = false {
    didSet { if isDiskBehind != oldValue { readWaiting() } }
  }
  /// The client sends nothing more.
  private var isAtEnd = false
  /// The client reads nothing more: what it sent is still acted on, replies are dropped.
  private(set) var hasStoppedReading = false
  /// The client has sent something that is not read yet.
  private var hasInput = false
  private var lines = Lines.none
  /// The next turn was asked for.
  private var isQueued = false
  /// The end of the batch was asked to send what waits.
  private var isUnsent = false
  /// Unread output beyond which no further request is read, and no further row written.
  private static let pauseAt = 64 * 1024
  /// What is read at a time, in bytes.
  private static let chunk = 16 * 1024
  /// Replies beyond which the end of the batch is not waited for.
  private static let sendAt = 64 * 1024
  /// How long a line may take to its end, and a client to read something of its replies.
  static let lineTime = Duration.seconds(20)

  init(number: UInt64, descriptor: Int32, lineLimit: Int, budget: TurnBudget) {
    self.number = number
    self.budget = budget
    plainOrigin = ChangeOrigin(source: "socket", replyTo: number)
    self.descriptor = descriptor
    heardAt = EventLoop.now()
    framer = LineFramer(limit: lineLimit)
  }

  deinit {
    guard state != .ended else { return }
    watch?.cancel()
    close(descriptor)
  }

  func start(on loop: EventLoop) throws(OperationsError) {
    // The watch ends with the connection.
    watch = try loop.watch(descriptor, for: .read, named: "control client") {
      [unowned self] ready in handle(ready)
    }
  }

  /// A change of this client waits for later phases.
  func beginWait() { openWaits += 1 }

  func endWait() {
    openWaits = max(0, openWaits - 1)
    endIfDone()
  }

  func owesReply() { owed += 1 }

  func hasReplied() {
    owed = max(0, owed - 1)
    if owed == 0, isDiskBehind { readWaiting() }
    endIfDone()
  }

  func send(_ reply: ControlReply) { sendLine { reply.append(to: &$0) } }

  func pass(_ line: [UInt8], isFinal: Bool) { sendLine { $0.append(contentsOf: line) } }

  /// Sends a line, which `write` appends, with everything else of the batch.
  func sendLine(isEvent: Bool = false, _ write: (inout [UInt8]) -> Void) {
    guard state == .open, !hasStoppedReading else { return }
    let before = output.unsent
    output.append(isEvent: isEvent, write)
    budget.unread += output.unsent - before
    if isFull, !isEvent { onDeadline?() }
    sendSoon()
  }

  private func sendSoon() {
    if output.sendable > Self.sendAt, !isFull { return flush() }
    guard !isUnsent else { return }
    isUnsent = true
    onUnsent?(self)
  }

  /// Begins a question about many keys, whose reply is written as far as the client reads it.
  func begin(_ walk: KeyWalk) {
    guard !hasStoppedReading else { return }  // Nobody reads the rows.
    self.walk = walk
  }

  /// Since when nothing has been under way with this client, which is between two requests and
  /// watches nothing; `nil` for any other.
  var idleSince: Moment? {
    let isIdle =
      !isListening && openWaits == 0 && owed == 0 && output.unsent == 0 && lines == .none
      && !hasInput
    return isIdle ? heardAt : nil
  }

  /// Says why, and ends the connection once that is sent.
  func end(saying error: ErrorReply) {
    guard state == .open else { return }
    walk = nil
    output.breakLine()
    send(.failure(error, id: nil))
    state = .ending
    unfinishedSince = EventLoop.now()
    onDeadline?()
    flush()
  }

  func end() {
    guard state != .ended else { return }
    state = .ended
    watch?.cancel()
    watch = nil
    close(descriptor)
    onEnd?(self)
  }

  /// Ends a connection that only waits for events, if nobody is left to hear them.
  ///
  /// Such a connection is not watched: that its client has shut down one direction would be
  /// reported again and again.
  func endIfAbandoned() {
    guard isAtEnd, lines == .none, state != .ended else { return }
    var request = pollfd(fd: descriptor, events: 0, revents: 0)
    guard unsafe poll(&request, 1, 0) > 0 else { return }
    end()
  }

  private func handle(_ ready: IOInterest) {
    if ready.contains(.hangUp) { stopReplying() }
    if ready.contains(.write) { flush(hasRoom: true) }
    if lines == .waiting, !isPaused { wantTurn() }
    guard ready.contains(.read) || ready.contains(.hangUp) else { return }
    guard budget.waiting == 0, !budget.isSpent else {
      // Others wait for their turn.
      hasInput = true
      behindSince = behindSince ?? EventLoop.now()
      return wantTurn()
    }
    read()
  }

  private func read() {
    hasInput = false
    // A bounded number of rounds, so that one client cannot keep the loop.
    for _ in 0..<4 where state == .open && !isAtEnd && !isPaused && lines == .none {
      let count = receive()
      if count > 0 {
        takeLines()
        if count < Self.chunk { break }  // Nothing more has come; if so, the loop tells.
      } else if count < 0, errno == EAGAIN || errno == EINTR {
        break
      } else {
        isAtEnd = true
        if count < 0 { stopReplying() }
        takeLines()
        endIfAbandoned()
      }
    }
    updateInterest()
    endIfDone()
  }

  /// Hands what has come to the framer; the result is that of `recv`.
  private func receive() -> Int {
    unsafe withUnsafeTemporaryAllocation(byteCount: Self.chunk, alignment: 1) { bytes in
      let count = unsafe recv(descriptor, bytes.baseAddress, bytes.count, 0)
      if count > 0 {
        framer.append(unsafe Span(_unsafeBytes: UnsafeRawBufferPointer(rebasing: bytes[..<count])))
      }
      return count
    }
  }

  /// Goes on with the lines that have come.
  func takeTurn() {
    isQueued = false
    guard state != .ended else { return }
    if lines == .waiting, !isPaused {
      takeLines()
      endIfAbandoned()
    }
    if hasInput, lines == .none, !isPaused { return read() }
    updateInterest()
    endIfDone()
  }

  private func wantTurn() {
    guard !isQueued else { return }
    isQueued = true
    onTurnWanted?(self)
  }

  /// Takes the lines that have come, until the turn is over or too many replies wait for the client
  /// to read them.
  ///
  /// A client that has hung up has no share: what it sent came before whatever others send now.
  private func takeLines() {
    lines = .taken
    defer { if lines == .taken { lines = .waiting } }
    let share = budget.share
    var spent = 0
    while state == .open, !isPaused {
      let isOver = spent >= (walk == nil ? TurnBudget.slice : share) && !hasStoppedReading
      if (walk != nil || !framer.isEmpty) && (isOver || budget.isSpent) {
        behindSince = behindSince ?? EventLoop.now()
        flush()  // Only this shows that the client has hung up.
        if !hasStoppedReading || budget.isSpent { return wantTurn() }
      }
      guard walk == nil else {
        spent += takeWalk(limit: share - spent)
        continue
      }
      let next = framer.next()
      let size = if case .line(let bytes, _) = next { bytes.count } else { 0 }
      let work = TurnBudget.Cost.line + size / TurnBudget.Cost.bytes
      budget.spend(work)
      spent += work
      guard let line = next else {
        if isAtEnd { endInput() }
        lines = .none
        if output.unsent == 0 { behindSince = nil }
        noteLine()
        return
      }
      if case .line = line { unfinishedSince = nil }
      onLine?(line, self)
    }
  }

  /// Answers all lines, and a line that the input has ended in.
  private func endInput() {
    onInputEnd?()
    guard case .line(_, let number) = framer.finish() else { return }
    let error = ErrorReply(.incompleteLine, "the input ended inside a line", line: number)
    send(.failure(error, id: nil))
  }

  /// Goes on with the question about many keys, and returns the work that was done.
  private func takeWalk(limit: Int) -> Int {
    guard var walk = self.walk.take() else { return 0 }
    let before = output.unsent
    var work = 0
    let limit = min(limit, TurnBudget.slice)  // So that output is sent, and time is looked at.
    output.appendPart { work = onWalk?(&walk, limit, &$0) ?? 0 }
    if walk.isDone { output.endLine() } else { self.walk = walk }
    budget.spend(work)
    budget.unread += max(0, output.unsent - before)
    if isFull { onDeadline?() }
    if output.unsent > 0 { sendSoon() }
    return work
  }

  /// Records since when the newest line has been incomplete.
  private func noteLine() {
    heardAt = EventLoop.now()
    guard state == .open else { return }
    guard framer.isInLine, !isAtEnd else { return unfinishedSince = nil }
    guard unfinishedSince == nil else { return }
    unfinishedSince = heardAt
    onDeadline?()
  }

  private func endIfDone() {
    if state == .ending, hasStoppedReading || output.unsent == 0 { return end() }
    guard isAtEnd, lines == .none else { return }
    let isOwed = openWaits > 0 || owed > 0
    if hasStoppedReading || (!isOwed && !isListening && output.unsent == 0) { end() }
  }

  private var isPaused: Bool {
    output.sendable > Self.pauseAt || (isDiskBehind && owed > 0 && !hasStoppedReading)
  }

  /// The client does not read as fast as it is told.
  private var isFull: Bool { stalledSince != nil }

  /// Sends what waits, as far as the client takes it; `hasRoom` if the descriptor has room again.
  func flush(hasRoom: Bool = false) {
    isUnsent = false
    var mayFit = hasRoom || !isFull
    while output.sendable > 0, mayFit, state != .ended {
      let count = unsafe output.bytes.withUnsafeBytes { bytes in
        unsafe Glibc.send(
          descriptor,
          bytes.baseAddress?.advanced(by: output.sent),
          output.sendable,
          Int32(MSG_NOSIGNAL)
        )
      }
      if count > 0 {
        output.advance(by: count)
        stalledSince = nil
      } else if errno == EAGAIN {
        mayFit = false
        let now = EventLoop.now()
        behindSince = behindSince ?? now
        if stalledSince == nil {
          stalledSince = now
          onDeadline?()
        }
      } else if errno != EINTR {
        stopReplying()
      }
    }
    output.compact()
    if output.sendable == 0, lines == .none, !hasInput { behindSince = nil }
    readWaiting()
    endIfDone()
  }

  /// Takes lines again, if nothing is against it.
  private func readWaiting() {
    if lines == .waiting, !isPaused { wantTurn() }
    updateInterest()
  }

  private func stopReplying() {
    hasStoppedReading = true
    output = ControlOutput()
    walk = nil
    stalledSince = nil
    behindSince = nil
  }

  private func updateInterest() {
    var interest: IOInterest = []
    if state == .open, !isAtEnd, !isPaused, lines == .none { interest.insert(.read) }
    if isFull, output.sendable > 0 { interest.insert(.write) }
    watch?.interest = interest
  }
}

/// Ending who holds others up.
extension ControlConnection {
  /// What this client owes to others: the memory of what it has not read.
  var debt: Int { isFull && state == .open ? output.capacity : 0 }

  /// Bytes of events that wait, at most.
  var eventBytes: Int { output.unsentEventBytes }

  /// Events that wait for a client that reads nothing.
  func stalledEvents(at now: Moment) -> Int { isStalled(at: now) ? output.unsentEvents : 0 }

  /// Whether the client has read nothing for a second, although something waits for it.
  func isStalled(at now: Moment) -> Bool { Self.isOld(stalledSince, .seconds(1), at: now) }

  /// Whether the client has lagged behind for a while, with its requests or with its reading.
  func isBehind(at now: Moment) -> Bool { Self.isOld(behindSince, .milliseconds(100), at: now) }

  private static func isOld(_ start: Moment?, _ age: Duration, at now: Moment) -> Bool {
    start.map { $0.duration(to: now) >= age } ?? false
  }

  /// Drops the events that wait, says how many they are, and ends the connection once that is sent.
  func endAsTooSlow() -> Int {
    let count = output.unsentEvents
    output.removeUnsent()
    let message =
      count > 0
      ? "\(count) events were dropped: this client does not read them"
      : "replies were dropped: this client does not read them"
    end(saying: ErrorReply(.limit, message))
    return count
  }

  /// The next moment at which ``endIfLate(at:)`` or ``isLateReader(at:)`` may find something.
  var deadline: Moment? {
    let first = [unfinishedSince, unreadSince].compactMap(\.self).min()
    return first?.advanced(by: Self.lineTime)
  }

  /// Whether the client has read nothing of its replies for too long.
  ///
  /// One that waits for events only is not late: it may be suspended.
  func isLateReader(at now: Moment) -> Bool { Self.isOld(unreadSince, Self.lineTime, at: now) }

  /// Since when the client has read nothing of the replies that wait for it.
  private var unreadSince: Moment? {
    let owesReplies = walk != nil || output.unsent > output.unsentEventBytes
    return owesReplies && state == .open ? stalledSince : nil
  }

  /// Ends the connection if a line has taken too long.
  func endIfLate(at now: Moment) {
    guard Self.isOld(unfinishedSince, Self.lineTime, at: now) else { return }
    if state == .ending { return end() }
    // What is not read is not late.
    guard !isPaused, lines == .none, !hasInput else { return unfinishedSince = now }
    end(saying: ErrorReply(.incompleteLine, "the line did not end within 20 s"))
  }
}

/// What the client watches and records.
extension ControlConnection {
  /// A pattern whose events the client wants, under the id it gave.
  struct Watch {
    let pattern: Pattern
    let id: JSONValue?
  }

  /// A pattern whose changes the client writes down, under the id it gave.
  struct Recording {
    let pattern: Pattern
    let id: JSONValue?
    /// From when on their time is counted.
    let start: Moment
  }

  /// How many patterns a client may watch and record, because each event is sent once for each.
  static let observationLimit = 16

  /// The client is told what others do, however much that is.
  var isListening: Bool { !watches.isEmpty || !recordings.isEmpty }

  /// Whether the client may watch or record one more pattern.
  var canObserveMore: Bool { watches.count + recordings.count < Self.observationLimit }

  /// Sends an event that the client watches, whose text is `event`.
  func sendWatched(_ event: [UInt8], watch id: JSONValue?) {
    sendLine(isEvent: true) { ControlReply.appendWatched(event, watch: id, to: &$0) }
  }

  /// Sends an event that the client records.
  func sendEvent(_ reply: ControlReply) { sendLine(isEvent: true) { reply.append(to: &$0) } }
}
