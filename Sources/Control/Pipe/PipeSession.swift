// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values
internal import JSON

/// The decisions of a pipe: lines go in, requests to the gateway and results come out.
///
/// Every change gets an `id` and is followed until it is sent or has ended, but only the requested
/// phases are shown. It keeps one entry per open change: at most one per key, and those whose
/// request or reply is in flight.
package struct PipeSession {
  /// The outcomes of the lines so far.
  package struct Tally: Hashable, Sendable, CustomStringConvertible {
    /// Lines that were not valid, or that the gateway refused.
    package var refused = 0
    package var changes = 0
    package var sent = 0
    /// Commands that failed or expired.
    package var failed = 0
  }

  /// A change whose outcome is not known yet.
  private struct Entry {
    let id: JSONValue
    let line: Int
    /// The number that the gateway gives the line.
    let sentAs: Int
    let wait: Wait
    /// Whether the line requested every phase.
    let isShown: Bool
    /// Whether the line sets a scene, whose keys may have nothing that can confirm.
    let isScene: Bool
    /// Whether the line sets several properties; it becomes one entry for each when the gateway
    /// says how many.
    var isSet = false
    /// The key in its events, which may differ from an alias in the line; `nil` until it is
    /// accepted.
    var key: String?
    /// The newest event of the change.
    var last: EventObject?

    /// Whether it sets a scene's key, and only a confirmation is missing.
    var isUnconfirmedScene: Bool { isScene && wait == .confirmed && last?.phase == .sent }
  }

  /// Until when a change is followed.
  private enum Wait {
    case sent, confirmed
    /// Until its key is quiet and done, from any source.
    case settled
  }

  /// A flush or cancellation without a reply.
  private struct Query {
    let line: Int
    let sentAs: Int
    /// The key or pattern.
    let key: String
  }

  /// A request about one key that is no line of the input; its `id` says which.
  private enum OwnRequest: String {
    /// A question about a key whose changes wait until it has settled.
    case settling
    /// The question whether anything can confirm a scene's key.
    case scene
    /// A flush at the end of the input.
    case flush
  }

  /// Lines for the gateway.
  package private(set) var requests: [UInt8] = []
  /// Lines for standard output.
  package private(set) var results: [UInt8] = []
  package private(set) var tally = Tally()
  /// The number of the last line read.
  package private(set) var lineCount = 0

  private let source: String
  private let idPrefix: String
  private var framer: LineFramer
  private var entries: [JSONValue: [Entry]] = [:]
  /// The ids of the accepted changes in `entries`, by key.
  private var openIDs: [String: Set<JSONValue>] = [:]
  private var queries: [Query] = []
  /// The number of the pipe's own flushes without a reply.
  private var ownFlushes = 0
  /// The keys of accepted changes.
  private var changedKeys: Set<String> = []
  /// The number of changes that are neither accepted nor refused yet.
  private var unanswered = 0
  private var hasEnded = false
  private var hasFlushed = false
  /// The keys of changes that wait until those have settled.
  private var settling: [String: Settling] = [:]
  /// The number of lines that the gateway got beside those of the input.
  private var ownLines = 0
  private var isWatching = false

  /// - Parameters:
  ///   - source: The source of changes whose line names none.
  ///   - idPrefix: The prefix of the `id` of every change without one; unique among all clients.
  ///   - lineLimit: The most bytes of a line.
  package init(source: String, idPrefix: String, lineLimit: Int = 64 * 1024) {
    self.source = source
    self.idPrefix = idPrefix
    framer = LineFramer(limit: lineLimit)
  }

  /// Whether the input has ended, and every change is sent or has ended.
  package var isDone: Bool { hasFlushed && entries.isEmpty && queries.isEmpty && ownFlushes == 0 }

  /// The number of changes whose outcome is not known yet.
  package var openChanges: Int { entries.values.reduce(0) { $0 + $1.count } }

  // MARK: - Lines in

  /// Reads the next bytes of the input.
  package mutating func append(_ bytes: Span<UInt8>) {
    framer.append(bytes)
    while let next = framer.next() {
      switch next {
      case .line(let line, let number): read(line, number)
      case .tooLong(let number):
        let message = "the line has more than \(framer.limit) bytes"
        refuse(ErrorReply(.lineTooLong, message, line: number), number, id: nil)
      }
    }
  }

  /// Ends the input: reads a last line without a line break, and flushes the changed keys.
  package mutating func finish() {
    if case .line(let line, let number) = framer.finish() { read(line, number) }
    hasEnded = true
    flushIfReady()
  }

  /// Flushes once all changes are answered.
  private mutating func flushIfReady() {
    guard hasEnded, !hasFlushed, unanswered == 0 else { return }
    hasFlushed = true
    for key in changedKeys.sorted() { askOwn(ControlRequest(.flush, key: key), as: .flush) }
    ownFlushes = changedKeys.count
  }

  private mutating func read(_ line: ArraySlice<UInt8>, _ number: Int) {
    var request: ControlRequest
    var waitsUntilSettled = false
    do throws(GrammarError) {
      do throws(GrammarError) {
        request = try ControlRequest(line: line.span)
      } catch {
        guard let settled = try Self.settled(line) else { throw error }
        (request, waitsUntilSettled) = (settled, true)
      }
    } catch {
      return refuse(ErrorReply(error, line: number), number, id: error.replyID)
    }
    switch request.operation {
    case .set where request.isDryRun, .step where request.isDryRun, .toggle where request.isDryRun,
      .scene where request.isDryRun:
      let message = #""dry_run" is for the control socket: a pipe makes changes"#
      let reply = ErrorReply(.unsupported, message, line: number)
      return refuse(reply, number, id: request.replyID)
    case .set, .step, .toggle, .scene:
      if waitsUntilSettled { watch() }
      tally.changes += 1
      let id = request.replyID ?? .string("\(idPrefix)\(number)")
      let wait = request.wait
      let isScene = request.operation == .scene
      entries[id, default: []].append(
        Entry(
          id: id,
          line: number,
          sentAs: number + ownLines,
          wait: waitsUntilSettled ? .settled : wait == .confirmed ? .confirmed : .sent,
          isShown: wait != nil,
          isScene: isScene,
          isSet: request.deviceMembers != nil || isScene
        )
      )
      request.replyID = id
      request.wait = wait ?? .sent
      request.source = request.source ?? source
      unanswered += 1
    case .flush, .cancel:
      queries.append(Query(line: number, sentAs: number + ownLines, key: request.key))
    case .get, .pending, .describe, .watch, .record, .reload, .status, .log, .devices:
      let message =
        "a pipe accepts changes, scenes, flush and cancel; use the control socket for other requests"
      let reply = ErrorReply(.unsupported, message, line: number)
      return refuse(reply, number, id: request.replyID)
    }
    keepCount(upTo: number - 1)
    append(request)
    lineCount = number
  }

  /// The request of a line with `"wait":"settled"`; `nil` for any other.
  ///
  /// The gateway follows the change itself, and the pipe its key.
  private static func settled(_ line: ArraySlice<UInt8>) throws(GrammarError) -> ControlRequest? {
    guard case .object(var members)? = try? JSONParser.parse(line.span),
      let place = members.firstIndex(where: { $0.name == "wait" && $0.value == "settled" })
    else { return nil }
    members[place] = .init("wait", "sent")
    return try ControlRequest(.object(members))
  }

  private mutating func append(_ request: ControlRequest) {
    requests.append(contentsOf: request.line)
    requests.append(0x0A)
  }

  /// Sends a blank line for each line that is not sent, so that the gateway's line numbers match.
  private mutating func keepCount(upTo number: Int) {
    while lineCount < number {
      requests.append(0x0A)
      lineCount += 1
    }
  }

  private mutating func refuse(_ error: ErrorReply, _ number: Int, id: JSONValue?) {
    tally.refused += 1
    show(ControlReply.failure(error, id: id).line[...], ofLine: number)
    keepCount(upTo: number)
  }

  /// Shows a reply with the number of the line that it answers, and the key of a query.
  private mutating func show(_ reply: ArraySlice<UInt8>, ofLine number: Int?, key: String? = nil) {
    defer { results.append(0x0A) }
    guard let number, reply.last == UInt8(ascii: "}") else {
      results.append(contentsOf: reply)  // Not about a line: the gateway ends the connection.
      return
    }
    results.append(contentsOf: reply.dropLast())
    if let key {
      results.append(contentsOf: #","key":"#.utf8)
      JSONWriter.appendString(key, to: &results)
    }
    results.append(contentsOf: #","line":\#(number)}"#.utf8)
  }

  // MARK: - Replies in

  /// Handles a reply of the gateway; `line` is its text.
  package mutating func receive(_ reply: ControlReply, line: ArraySlice<UInt8>) {
    switch reply {
    case .event(let event, let id): receive(event, id: id ?? .string(event.id), line)
    case .failure(let error, let id):
      if let (own, key) = ownRequest(of: id) {
        receive(error, to: own, about: key)
      } else {
        receive(error, id: id, line)
      }
    case .flushed, .cancelled:
      if !queries.isEmpty {
        let query = queries.removeFirst()
        show(line, ofLine: query.line, key: query.key)
      } else if ownFlushes > 0 {
        ownFlushes -= 1
      }
    case .watched(let event, _): settle(event.key, reply)
    case .described(let rows, let id):
      if let row = rows.first, row.confirmWithin == nil {
        _ = removeChanges(of: row.key, where: \.isUnconfirmedScene)
      }
      settle(settlingKey(of: id), reply)
    case .targets(_, let id), .pending(_, let id): settle(settlingKey(of: id), reply)
    case .recorded, .reloaded, .status, .logged, .devices, .words, .previewed: break
    }
  }

  /// Handles a refusal, whose line is counted by the gateway.
  private mutating func receive(_ error: ErrorReply, id: JSONValue?, _ line: ArraySlice<UInt8>) {
    tally.refused += 1
    let query = queries.firstIndex { $0.sentAs == error.line }
    let change = query == nil ? refusedChange(id: id, sentAs: error.line) : nil
    var own = error
    own.line = query.map { queries[$0].line } ?? change?.entry.line ?? error.line
    show(own == error ? line : ControlReply.failure(own, id: id).line[...], ofLine: own.line)
    if let query {
      queries.remove(at: query)
    } else if let (entry, place) = change {
      remove(place, of: entry.id)
      if entry.key == nil { answered() }
    }
  }

  /// Handles a refusal of a request of the pipe itself, whose key usually is gone.
  ///
  /// The changes that wait for the reply end: their lines get the error.
  private mutating func receive(_ error: ErrorReply, to own: OwnRequest, about key: String) {
    let ended: [Entry]
    switch own {
    case .settling:
      settling[key] = nil
      ended = removeChanges(of: key) { $0.wait == .settled }
    case .scene: ended = removeChanges(of: key, where: \.isUnconfirmedScene)
    case .flush:
      ownFlushes -= 1
      ended = []  // Their events end the changes.
    }
    for entry in ended {
      tally.refused += 1
      var error = error
      error.line = entry.line
      show(ControlReply.failure(error, id: entry.id).line[...], ofLine: entry.line)
    }
  }

  private mutating func receive(_ event: EventObject, id: JSONValue, _ line: ArraySlice<UInt8>) {
    if let count = event.of { expandSet(into: count, id: id) }
    let place = place(of: event, id: id)
    let entry = place.flatMap { entries[id]?[$0] }
    if let place { entries[id]?[place].last = event }
    switch event.phase {
    case .accepted:
      if let place {
        entries[id]?[place].key = event.key
        openIDs[event.key, default: []].insert(id)
      }
      if entry != nil { changedKeys.insert(event.key) }
      answered()
    case .rejected:
      tally.refused += 1
      if entry?.key == nil { answered() }
    case .sent: tally.sent += 1
    case .failed, .expired: tally.failed += 1
    case .sending, .unchanged, .superseded, .cancelled, .confirmed: break
    }
    if event.phase == .accepted || event.phase == .rejected || entry?.isShown == true {
      show(line, ofLine: entry?.line)
    }
    guard let entry, let place else { return }
    switch (entry.wait, event.phase) {
    case (.settled, .accepted): startSettling(event)
    case (.settled, .rejected): remove(place, of: id)
    case (.confirmed, .sent) where entry.isScene:
      askOwn(ControlRequest(.describe, key: event.key), as: .scene)
    case (_, .accepted), (_, .sending), (.confirmed, .sent), (.settled, _): break
    case (_, _): remove(place, of: id)
    }
  }

  /// Expects an answer for each property of the oldest unanswered set with this id.
  private mutating func expandSet(into count: Int, id: JSONValue) {
    guard var open = entries[id],
      let place = open.firstIndex(where: { $0.key == nil }), open[place].isSet
    else { return }
    open[place].isSet = false
    open.insert(contentsOf: repeatElement(open[place], count: count - 1), at: place)
    entries[id] = open
    unanswered += count - 1
    tally.changes += count - 1
  }

  /// Which of the changes with this id an event is about.
  ///
  /// Changes are answered in their order. A later phase is about the oldest one of its key.
  private func place(of event: EventObject, id: JSONValue) -> Int? {
    guard let open = entries[id] else { return nil }
    return switch event.phase {
    case .accepted: open.firstIndex { $0.key == nil }
    case .rejected:
      open.firstIndex { $0.key == nil } ?? open.firstIndex { $0.key == event.key }
    case .sending, .sent, .confirmed, .unchanged, .superseded, .cancelled, .failed, .expired:
      open.firstIndex { $0.key == event.key }
    }
  }

  private mutating func answered() {
    unanswered -= 1
    flushIfReady()
  }

  /// The change that a refusal is about, and its place among those with its id.
  private func refusedChange(id: JSONValue?, sentAs: Int?) -> (entry: Entry, place: Int)? {
    // A refusal without an id is of a line that the gateway did not read.
    let open =
      id.map { entries[$0] ?? [] }
      ?? entries.values.first { $0.contains { $0.sentAs == sentAs } } ?? []
    // A gateway that passed the line on to another one may not know its number.
    let place =
      open.firstIndex { $0.sentAs == sentAs } ?? open.firstIndex { $0.key == nil }
      ?? open.indices.first
    return place.map { (open[$0], $0) }
  }

  private mutating func remove(_ place: Int, of id: JSONValue) {
    guard var open = entries.removeValue(forKey: id) else { return }
    let key = open.remove(at: place).key
    replace(id, by: open, without: key)
  }

  /// Removes accepted changes of a key, and returns them in the order of their lines.
  private mutating func removeChanges(
    of key: String,
    where isMeant: (Entry) -> Bool
  ) -> [Entry] {
    var removed: [Entry] = []
    for id in openIDs[key] ?? [] {
      let open = entries[id] ?? []
      let ended = open.filter { $0.key == key && isMeant($0) }
      guard !ended.isEmpty else { continue }
      removed += ended
      replace(id, by: open.filter { $0.key != key || !isMeant($0) }, without: key)
    }
    return removed.sorted { $0.line < $1.line }
  }

  /// Replaces the changes with an id after some of a key were removed.
  private mutating func replace(_ id: JSONValue, by open: [Entry], without key: String?) {
    entries[id] = open.isEmpty ? nil : open
    guard let key, !open.contains(where: { $0.key == key }) else { return }
    openIDs[key]?.remove(id)
    if openIDs[key]?.isEmpty == true { openIDs[key] = nil }
  }

  // MARK: - Until a key has settled

  /// Watches what others do, before the first change that waits for a key.
  private mutating func watch() {
    guard !isWatching else { return }
    isWatching = true
    askOwn(ControlRequest(.watch, key: "*"))
  }

  /// Sends a request that is no line of the input.
  private mutating func askOwn(_ request: ControlRequest, as own: OwnRequest? = nil) {
    var request = request
    if let own { request.id = "\(idPrefix)\(own.rawValue)-\(request.key)" }
    append(request)
    ownLines += 1
  }

  private mutating func startSettling(_ event: EventObject) {
    if settling[event.key] != nil {
      // What is known is from before this change.
      return settle(event.key, .watched(event, watch: nil))
    }
    settling[event.key] = Settling([event.key], pattern: event.key)
    ask(settling[event.key]?.questions(describing: true) ?? [])
  }

  /// The request of the pipe itself that has this id, and its key.
  private func ownRequest(of id: JSONValue?) -> (own: OwnRequest, key: String)? {
    guard let text = id?.string, text.hasPrefix(idPrefix) else { return nil }
    let parts = text.dropFirst(idPrefix.count).split(separator: "-", maxSplits: 1)
    guard parts.count == 2, let own = OwnRequest(rawValue: String(parts[0])) else { return nil }
    return (own, String(parts[1]))
  }

  private func settlingKey(of id: JSONValue?) -> String? {
    guard let (own, key) = ownRequest(of: id), own == .settling else { return nil }
    return key
  }

  private mutating func ask(_ questions: [ControlRequest]) {
    for question in questions { askOwn(question, as: .settling) }
  }

  private mutating func settle(_ key: String?, _ reply: ControlReply) {
    guard let key, settling[key] != nil else { return }
    ask(settling[key]?.receive(reply) ?? [])
    guard let state = settling[key], state.isDone, let status = state.statuses[key] else { return }
    settling[key] = nil
    endSettled(key, with: status.event)
  }

  /// Ends the changes that waited for a key; those that did not end with `event` show it, which is
  /// another's.
  private mutating func endSettled(_ key: String, with event: EventObject?) {
    var isOwn = false
    for entry in removeChanges(of: key, where: { $0.wait == .settled }) {
      guard let event else { continue }
      if event.id == entry.last?.id, event.phase == entry.last?.phase {
        isOwn = true
      } else {
        show(event.bytes[...], ofLine: entry.line)
      }
    }
    // The failure of a change of this pipe is counted already.
    guard !isOwn, let phase = event?.phase, phase == .failed || phase == .expired else { return }
    tally.failed += 1
  }

  // MARK: - Output

  /// Removes the first `count` bytes of ``requests``.
  package mutating func removeRequests(_ count: Int) { requests.removeFirst(count) }

  /// Removes and returns ``results``.
  package mutating func dequeueResults() -> [UInt8] {
    defer { results.removeAll(keepingCapacity: true) }
    return results
  }
}

extension PipeSession.Tally {
  /// A summary in one line: `100000 changes, 1 sent, 2 refused`.
  package var description: String {
    var parts = [CountText.text(changes, "change"), "\(sent) sent"]
    if failed > 0 { parts.append("\(failed) failed") }
    if refused > 0 { parts.append("\(refused) refused") }
    return parts.joined(separator: ", ")
  }
}
