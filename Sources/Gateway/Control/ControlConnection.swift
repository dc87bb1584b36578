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

  /// What the framer found.
  enum Line {
    case whole(ArraySlice<UInt8>, number: Int)
    case tooLong(number: Int)
    /// The input ended inside a line.
    case incomplete(number: Int)
  }

  let number: UInt64
  let plainOrigin: ChangeOrigin
  var watches: [Watch] = []
  var recordings: [Recording] = []
  var onLine: ((Line, ControlConnection) -> Void)?
  var onEnd: ((ControlConnection) -> Void)?
  /// Replies wait to be sent with ``flush()``.
  var onUnsent: ((ControlConnection) -> Void)?
  /// The last line has been taken, so that the connection may end.
  var onInputEnd: (() -> Void)?
  /// Lines are left that wait for ``takeTurn()``.
  var onTurnWanted: ((ControlConnection) -> Void)?
  /// An event was appended, which comes whether the client reads or not.
  var onEvent: ((_ bytes: Int) -> Void)?
  /// A line of the client, or the last one to it, is unfinished from now on.
  var onUnfinished: (() -> Void)?
  /// Since when the line that the client sends has not ended, or the last line to it is not sent.
  private(set) var unfinishedSince: Moment?
  /// When the client last sent something.
  private(set) var heardAt: Moment
  private let descriptor: Int32
  private var framer: LineFramer
  private var watch: IOWatch?
  private var output = ControlOutput()
  /// Since when the client has read nothing of what waits.
  private var stalledSince: Moment?
  /// The connection ends when what waits is sent.
  private var isEnding = false
  private var openWaits = 0
  /// Changes that were accepted and whose answer was not sent yet.
  private var owed = 0
  /// Too much waits for the disk: no further request is read while replies to this client do.
  ///
  /// A client that sends faster than the disk writes must slow down before changes are refused.
  var isDiskBehind = false {
    didSet { if isDiskBehind != oldValue { goOn() } }
  }
  /// The client sends nothing more.
  private var isAtEnd = false
  /// The client reads nothing more: what it sent is still acted on, replies are dropped.
  private(set) var isDeaf = false
  private var isEnded = false
  /// Lines have come that wait for the next turn, or until the client has read its replies.
  private var hasLines = false
  /// A turn goes on.
  private var isAtLines = false
  /// The next turn was asked for.
  private var isQueued = false
  /// The end of the batch was asked to send what waits.
  private var isUnsent = false
  /// The client does not read as fast as it is told; the descriptor is watched for room.
  private var isFull = false
  /// What the descriptor is watched for.
  private var watchesInput = true
  private var watchesRoom = false
  /// Unread output beyond which no further request is read.
  private static let pauseAt = 256 * 1024
  /// What is read at a time, in bytes.
  private static let chunk = 16 * 1024
  /// The lines of a turn; a client that sends more at once waits until others have had theirs.
  private static let turnLines = 128
  /// How long a turn may take in nanoseconds, when lines cost more than usual; one line is always
  /// taken.
  private static let turnTime: UInt64 = 5_000_000
  /// Replies beyond which the end of the batch is not waited for.
  private static let sendAt = 64 * 1024
  /// How long a line may take to its end.
  static let lineTime = Duration.seconds(20)

  init(number: UInt64, descriptor: Int32, lineLimit: Int) {
    self.number = number
    plainOrigin = ChangeOrigin(source: "socket", replyTo: number)
    self.descriptor = descriptor
    heardAt = EventLoop.now()
    framer = LineFramer(limit: lineLimit)
  }

  deinit {
    guard !isEnded else { return }
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
    if owed == 0, isDiskBehind { goOn() }
    endIfDone()
  }

  func send(_ reply: ControlReply) { sendLine { reply.append(to: &$0) } }

  /// Sends an event that the client watches or records.
  func sendEvent(_ reply: ControlReply) {
    let before = output.unsent
    sendLine(isEvent: true) { reply.append(to: &$0) }
    onEvent?(max(0, output.unsent - before))
  }

  /// Sends a line with everything else of the batch.
  func sendLine(_ line: [UInt8]) { sendLine { $0.append(contentsOf: line) } }

  /// The same with what `write` appends.
  func sendLine(isEvent: Bool = false, _ write: (inout [UInt8]) -> Void) {
    guard !isEnded, !isDeaf, !isEnding else { return }
    output.append(isEvent: isEvent, write)
    if output.unsent > Self.sendAt, !isFull { return flush() }
    guard !isUnsent else { return }
    isUnsent = true
    onUnsent?(self)
  }

  // MARK: - Ending who holds others up

  /// What this client owes to others: memory for events that it does not read, or for anything while
  /// it reads nothing at all.
  func debt(at now: Moment) -> Int {
    guard isFull, !isEnding else { return 0 }
    return isStalled(at: now)
      ? output.capacity : min(output.capacity, 2 * output.unsentEventBytes)
  }

  /// Bytes of events that wait, at most.
  var eventBytes: Int { output.unsentEventBytes }

  /// Events that wait for a client that reads nothing.
  func stalledEvents(at now: Moment) -> Int { isStalled(at: now) ? output.unsentEvents : 0 }

  private func isStalled(at now: Moment) -> Bool {
    stalledSince.map { $0.duration(to: now) >= .seconds(1) } ?? false
  }

  /// Drops the events that wait, says how many they are, and ends the connection once that is sent.
  func endAsTooSlow() -> Int {
    let count = output.unsentEvents
    output.removeUnsent()
    end(
      saying: ErrorReply(.limit, "\(count) events were dropped: this client does not read them")
    )
    return count
  }

  /// Ends the connection if a line has taken too long.
  func endIfLate(at now: Moment) {
    guard let since = unfinishedSince, since.advanced(by: Self.lineTime) <= now else { return }
    if isEnding { return end() }
    // What is not read is not late.
    guard !isPaused, !hasLines else { return unfinishedSince = now }
    end(saying: ErrorReply(.incompleteLine, "the line did not end within 20 s"))
  }

  /// Whether nothing is under way with this client: it is between two requests, and watches nothing.
  var isIdle: Bool {
    !isListening && openWaits == 0 && owed == 0 && output.unsent == 0 && !hasLines
  }

  /// Says why, and ends the connection once that is sent.
  func end(saying error: ErrorReply) {
    guard !isEnded, !isEnding else { return }
    send(.failure(error, id: nil))
    isEnding = true
    unfinishedSince = EventLoop.now()
    onUnfinished?()
    flush()
  }

  func end() {
    guard !isEnded else { return }
    isEnded = true
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
    guard isAtEnd, !hasLines, !isEnded else { return }
    var request = pollfd(fd: descriptor, events: 0, revents: 0)
    guard unsafe poll(&request, 1, 0) > 0 else { return }
    end()
  }

  private func handle(_ ready: IOInterest) {
    if ready.contains(.hangUp) {
      becomeDeaf()
      (watchesInput, watchesRoom) = (false, false)  // The watch may have stopped.
    }
    if ready.contains(.write) {
      isFull = false
      flush()
    }
    if hasLines, !isPaused { wantTurn() }
    if ready.contains(.read) || ready.contains(.hangUp) { read() }
  }

  private func read() {
    // A bounded number of rounds, so that one client cannot keep the loop.
    for _ in 0..<4 where !isEnded && !isEnding && !isAtEnd && !isPaused && !hasLines {
      let count = receive()
      if count > 0 {
        takeLines()
        if count < Self.chunk { break }  // Nothing more has come; if so, the loop tells.
      } else if count < 0, errno == EAGAIN || errno == EINTR {
        break
      } else {
        isAtEnd = true
        if count < 0 { becomeDeaf() }
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
    guard hasLines, !isEnded, !isPaused else { return }
    takeLines()
    endIfAbandoned()
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
  /// A client that has hung up gets no further turn: what it sent came before whatever others send
  /// now.
  private func takeLines() {
    hasLines = true
    isAtLines = true
    defer { isAtLines = false }
    let end = EventLoop.now().nanoseconds &+ Self.turnTime
    var count = 0
    while !isEnded, !isEnding, !isPaused {
      let isLate = count > 0 && !framer.isEmpty && EventLoop.now().nanoseconds >= end
      let isOver = count == Self.turnLines || isLate
      if isOver, !isDeaf {
        flush()  // Only this shows that the client has hung up.
        if !isDeaf { return wantTurn() }
      }
      count = min(count + 1, Self.turnLines)
      switch framer.next() {
      case .line(let bytes, let number):
        if !isEnding { unfinishedSince = nil }
        onLine?(.whole(bytes, number: number), self)
      case .tooLong(let number): onLine?(.tooLong(number: number), self)
      case nil:
        if isAtEnd, !isEnded, let rest = framer.finish() {
          onLine?(.incomplete(number: rest.number), self)
        }
        if isAtEnd { onInputEnd?() }
        hasLines = false
        noteLine()
        return
      }
    }
  }

  /// Records since when the newest line has been incomplete.
  private func noteLine() {
    heardAt = EventLoop.now()
    guard !isEnding else { return }
    guard framer.isInLine, !isAtEnd else { return unfinishedSince = nil }
    guard unfinishedSince == nil else { return }
    unfinishedSince = heardAt
    onUnfinished?()
  }

  private func endIfDone() {
    if isEnding, isDeaf || output.unsent == 0 { return end() }
    guard isAtEnd, !hasLines else { return }
    let isOwed = openWaits > 0 || owed > 0
    if isDeaf || (!isOwed && !isListening && output.unsent == 0) { end() }
  }

  /// The client is told what others do, however much that is.
  private var isListening: Bool { !watches.isEmpty || !recordings.isEmpty }

  private var isPaused: Bool {
    output.unsent > Self.pauseAt || (isDiskBehind && owed > 0 && !isDeaf)
  }

  /// Sends what waits, as far as the client takes it.
  func flush() {
    isUnsent = false
    while output.unsent > 0, !isFull, !isEnded {
      let count = unsafe output.bytes.withUnsafeBytes { bytes in
        unsafe Glibc.send(
          descriptor,
          bytes.baseAddress?.advanced(by: output.sent),
          output.unsent,
          Int32(MSG_NOSIGNAL)
        )
      }
      if count > 0 {
        output.advance(by: count)
        stalledSince = nil
      } else if errno == EAGAIN {
        isFull = true
        stalledSince = stalledSince ?? EventLoop.now()
      } else if errno != EINTR {
        becomeDeaf()
      }
    }
    output.compact()
    goOn()
    endIfDone()
  }

  /// Takes lines again, if nothing is against it.
  private func goOn() {
    if hasLines, !isAtLines, !isPaused { wantTurn() }
    updateInterest()
  }

  private func becomeDeaf() {
    isDeaf = true
    output = ControlOutput()
    stalledSince = nil
  }

  private func updateInterest() {
    let wantsInput = !isAtEnd && !isPaused && !hasLines && !isEnding
    let wantsRoom = isFull && output.unsent > 0
    guard !isEnded, wantsInput != watchesInput || wantsRoom != watchesRoom else { return }
    watchesInput = wantsInput
    watchesRoom = wantsRoom
    var interest: IOInterest = []
    if wantsInput { interest.insert(.read) }
    if wantsRoom { interest.insert(.write) }
    watch?.interest = interest
  }
}
