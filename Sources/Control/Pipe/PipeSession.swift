// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// What a pipe of changes decides: lines in, requests to the gateway and results out.
///
/// Every change gets an `id` and is followed until it was sent or has ended, whether its line asked
/// for that or not; only what was asked for is shown. Keeps one entry per change that is under way,
/// which is at most one per key and what is on the road to the gateway and back.
package struct PipeSession {
  /// What became of the lines so far.
  package struct Tally: Hashable, Sendable, CustomStringConvertible {
    /// Lines that were no request, or that the gateway refused.
    package var refused = 0
    package var changes = 0
    package var sent = 0
    /// Commands that failed or expired.
    package var failed = 0
  }

  /// A change whose end is not known yet.
  private struct Entry {
    let line: Int
    let wait: ControlRequest.Wait
    /// The line asked for every phase.
    let isShown: Bool
  }

  /// Lines for the gateway.
  package private(set) var requests: [UInt8] = []
  /// Lines for whoever wrote the changes.
  package private(set) var results: [UInt8] = []
  package private(set) var tally = Tally()
  /// The line that was read last.
  package private(set) var lineCount = 0

  private let source: String
  private let idPrefix: String
  private var framer: LineFramer
  private var entries: [JSONValue: [Entry]] = [:]
  /// Flushes and cancellations that were not answered yet, by line.
  private var queries: [Int] = []
  /// Flushes of the pipe's own that were not answered yet.
  private var ownFlushes = 0
  /// The keys of accepted changes.
  private var changedKeys: Set<String> = []
  /// Changes that were neither accepted nor refused yet.
  private var unanswered = 0
  private var hasEnded = false
  private var hasFlushed = false

  /// - Parameters:
  ///   - source: Who asks, where a line does not say.
  ///   - idPrefix: Begins the `id` of every change that has none; nobody else's does.
  ///   - lineLimit: The most bytes of a line.
  package init(source: String, idPrefix: String, lineLimit: Int = 64 * 1024) {
    self.source = source
    self.idPrefix = idPrefix
    framer = LineFramer(limit: lineLimit)
  }

  /// The input has ended and everything that was changed was sent or has ended.
  package var isDone: Bool { hasFlushed && entries.isEmpty && queries.isEmpty && ownFlushes == 0 }

  /// Changes whose end is not known yet.
  package var openChanges: Int { entries.values.reduce(0) { $0 + $1.count } }

  // MARK: - Lines in

  /// Takes the next bytes of the input.
  package mutating func append(_ bytes: Span<UInt8>) {
    framer.append(bytes)
    while let next = framer.next() {
      switch next {
      case .line(let line, let number): take(line, number)
      case .tooLong(let number):
        let message = "the line has more than \(framer.limit) bytes"
        refuse(ErrorReply(.lineTooLong, message, line: number), number, id: nil)
      }
    }
  }

  /// Ends the input: takes a last line without a line break; what was changed is flushed.
  package mutating func finish() {
    if let rest = framer.finish() { take(rest.bytes, rest.number) }
    hasEnded = true
    flushIfReady()
  }

  /// Flushes once it is known which changes were accepted.
  private mutating func flushIfReady() {
    guard hasEnded, !hasFlushed, unanswered == 0 else { return }
    hasFlushed = true
    for key in changedKeys.sorted() { append(ControlRequest(.flush, key: key)) }
    ownFlushes = changedKeys.count
  }

  private mutating func take(_ line: ArraySlice<UInt8>, _ number: Int) {
    var request: ControlRequest
    do throws(GrammarError) {
      request = try ControlRequest(line: line.span)
    } catch {
      return refuse(ErrorReply(error, line: number), number, id: error.replyID)
    }
    switch request.operation {
    case .set, .step, .toggle:
      tally.changes += 1
      let id = request.replyID ?? .string("\(idPrefix)\(number)")
      let wait = request.wait
      entries[id, default: []].append(
        Entry(line: number, wait: wait ?? .sent, isShown: wait != nil)
      )
      request.replyID = id
      request.wait = wait ?? .sent
      request.source = request.source ?? source
      unanswered += 1
    case .flush, .cancel:
      queries.append(number)
    case .get, .pending, .describe, .watch, .record, .reload:
      let message = "a pipe takes changes, flush and cancel; ask the control socket for the rest"
      let reply = ErrorReply(.unsupported, message, line: number)
      return refuse(reply, number, id: request.replyID)
    }
    keepCount(upTo: number - 1)
    append(request)
    lineCount = number
  }

  private mutating func append(_ request: ControlRequest) {
    requests.append(contentsOf: request.line)
    requests.append(0x0A)
  }

  /// Lines that are not passed on are passed on blank, so that the gateway counts as the input does.
  private mutating func keepCount(upTo number: Int) {
    while lineCount < number {
      requests.append(0x0A)
      lineCount += 1
    }
  }

  private mutating func refuse(_ error: ErrorReply, _ number: Int, id: JSONValue?) {
    tally.refused += 1
    show(ControlReply.failure(error, id: id).line)
    keepCount(upTo: number)
  }

  private mutating func show(_ line: [UInt8]) {
    results.append(contentsOf: line)
    results.append(0x0A)
  }

  // MARK: - Replies in

  /// Takes a reply of the gateway's; `line` is what it was read from.
  package mutating func take(_ reply: ControlReply, line: ArraySlice<UInt8>) {
    switch reply {
    case .event(let event, let id): take(event, id: id ?? .string(event.id), line)
    case .failure(let error, let id):
      tally.refused += 1
      show(Array(line))
      if let number = error.line, let place = queries.firstIndex(of: number) {
        queries.remove(at: place)
      } else {
        answered()
        forget(id: id, line: error.line)
      }
    case .flushed, .cancelled:
      if !queries.isEmpty {
        queries.removeFirst()
        show(Array(line))
      } else if ownFlushes > 0 {
        ownFlushes -= 1
      }
    case .watched, .recorded, .targets, .pending, .described, .reloaded: break
    }
  }

  private mutating func take(_ event: EventObject, id: JSONValue, _ line: ArraySlice<UInt8>) {
    let entry = entries[id]?.first
    switch event.phase {
    case .accepted:
      if entry != nil { changedKeys.insert(event.key) }
      answered()
    case .rejected:
      tally.refused += 1
      answered()
    case .sent: tally.sent += 1
    case .failed, .expired: tally.failed += 1
    case .sending, .unchanged, .superseded, .cancelled, .confirmed: break
    }
    if event.phase == .accepted || event.phase == .rejected || entry?.isShown == true {
      show(Array(line))
    }
    guard let entry, event.phase != .accepted, event.phase != .sending,
      event.phase != .sent || entry.wait == .sent
    else { return }
    removeFirst(of: id)
  }

  private mutating func answered() {
    unanswered -= 1
    flushIfReady()
  }

  private mutating func forget(id: JSONValue?, line: Int?) {
    if let id, entries[id] != nil { return removeFirst(of: id) }
    guard let line, let id = entries.first(where: { $0.value.contains { $0.line == line } })?.key
    else { return }
    removeFirst(of: id)
  }

  private mutating func removeFirst(of id: JSONValue) {
    guard var open = entries[id] else { return }
    open.removeFirst()
    entries[id] = open.isEmpty ? nil : open
  }

  // MARK: - What goes out

  /// Forgets the first `count` bytes of ``requests``.
  package mutating func removeRequests(_ count: Int) { requests.removeFirst(count) }

  /// Gives ``results`` away.
  package mutating func takeResults() -> [UInt8] {
    defer { results.removeAll(keepingCapacity: true) }
    return results
  }
}

extension PipeSession.Tally {
  /// One line for a person: `100000 changes, 1 sent, 2 refused`.
  package var description: String {
    var parts = ["\(changes) change\(changes == 1 ? "" : "s")", "\(sent) sent"]
    if failed > 0 { parts.append("\(failed) failed") }
    if refused > 0 { parts.append("\(refused) refused") }
    return parts.joined(separator: ", ")
  }
}
