// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import HTTP
import JSON
import Values

/// The changes of one request, one per line, each executed on receipt; the results are the
/// response.
final class ChangeBatch: ResponseStream {
  /// How many bytes of results are kept for one request: they are sent when it has ended, as
  /// HTTP/1.1 clients expect.
  static let outputLimit = 16 << 20
  private static let mediaType = "application/x-ndjson"

  private var framer: LineFramer
  private var output: [UInt8] = []
  private var sent = 0
  /// Changes that wait for their last reply.
  private var open: [UInt64: HTTPChange] = [:]
  private var isFull = false
  /// Whether the request has ended.
  private var isComplete = false
  /// Whether the client has left, and its answer is kept.
  private var isAbandoned = false
  /// Whether it counts among the requests that wait.
  private var isWaiting = false
  private let lineLimit: Int
  /// Who sends it, if a trusted proxy says so.
  private let person: String?
  private let exchange: HTTPExchange
  private unowned let surface: HTTPSurface

  init(exchange: HTTPExchange, surface: HTTPSurface, lineLimit: Int) {
    self.exchange = exchange
    self.surface = surface
    self.lineLimit = lineLimit
    person = surface.admission.client(of: exchange)?.person
    framer = LineFramer(limit: lineLimit)
  }

  /// Receives part of the request.
  func receive(_ bytes: Span<UInt8>) {
    framer.append(bytes)
    while let line = framer.next() {
      switch line {
      case .line(let bytes, let number):
        exchange.renewBodyTime()
        execute(bytes, number: number)
      case .tooLong(let number):
        fail(.lineTooLong, "the line has more than \(lineLimit) bytes", line: number)
      }
    }
  }

  /// The request has ended: its last line needs no line break.
  func end() {
    if case .line(let bytes, let number) = framer.finish() { execute(bytes, number: number) }
    isComplete = true
    if open.isEmpty || exchange.idempotencyKey != nil { return finish() }
    surface.answer(
      exchange,
      HTTPResponse(
        status: 200,
        headers: [HTTPHeader("Content-Type", Self.mediaType)],
        body: .stream(self)
      )
    )
  }

  /// Answers with all results at once, when the last of them is there.
  private func finish() {
    guard isComplete, open.isEmpty else { return }
    surface.answer(exchange, HTTPResponse(type: Self.mediaType, output))
    if isAbandoned { close() }
  }

  /// The client has its answer, or is gone: one with a key may come back for it.
  func clientLeft() {
    releaseRoom()
    isAbandoned = exchange.idempotencyKey != nil
    if !isAbandoned { close() }
  }

  private func releaseRoom() {
    if isWaiting { surface.waiting -= 1 }
    isWaiting = false
  }

  /// Ends the response without the results that are missing: the gateway or the client is gone.
  func close() {
    releaseRoom()
    surface.remove(self, of: exchange)
    for change in open.values {
      change.forget()
      surface.remove(change)
    }
    open = [:]
    exchange.wake()
  }

  func next(_ room: Int) -> ResponsePiece {
    guard sent < output.count else {
      output.removeAll()
      sent = 0
      return open.isEmpty ? .end : .wait
    }
    let piece = output[sent..<min(sent + room, output.count)]
    sent += piece.count
    return .bytes(Array(piece))
  }

  private func execute(_ bytes: ArraySlice<UInt8>, number: Int) {
    guard !isFull else { return }
    guard output.count < Self.outputLimit else {
      isFull = true
      return fail(
        .limit,
        "the results of one request are limited to \(Self.outputLimit) bytes; this line and those "
          + "after it were ignored",
        line: number
      )
    }
    do throws(GrammarError) {
      var request = try ControlRequest(line: bytes.span)
      switch request.operation {
      case .set, .step, .toggle, .flush, .cancel: break
      case .scene, .get, .pending, .describe, .watch, .record, .reload, .status, .log, .devices:
        throw GrammarError(
          code: .unsupported,
          message: "only changes, flush and cancel are allowed here; see GET /v1/devices, "
            + "/v1/pending and /v1/events",
          id: request.replyID
        )
      }
      guard !request.isDryRun else {
        throw GrammarError(
          code: .unsupported,
          message: #""dry_run" is for the control socket"#,
          id: request.replyID
        )
      }
      request.source = request.source ?? HTTPSurface.source
      request.by = person
      if request.wait != nil { try reserveRoom(id: request.replyID) }
      let change = surface.makeChange(wait: request.wait) { [weak self] reply, change, isLast in
        self?.receive(reply, change, isLast: isLast)
      }
      open[change.number] = change
      surface.perform(request, for: change, line: number)
    } catch {
      reject(ErrorReply(error, line: number), id: error.replyID)
    }
  }

  /// Counts the batch among the requests that wait, once.
  private func reserveRoom(id: JSONValue?) throws(GrammarError) {
    guard !isWaiting else { return }
    do throws(Problem) {
      try surface.checkRoomToLast(asStream: false)
    } catch {
      throw GrammarError(code: .limit, message: error.detail, id: id)
    }
    isWaiting = true
    surface.waiting += 1
  }

  private func receive(_ reply: ControlReply, _ change: HTTPChange, isLast: Bool) {
    if isLast { open[change.number] = nil }
    append(reply)
    // The answer to a request with a key is kept as a whole.
    if exchange.idempotencyKey != nil { finish() }
  }

  private func fail(_ code: ErrorCode, _ message: String, line: Int) {
    reject(ErrorReply(code, message, line: line), id: nil)
  }

  /// Reports a line that cannot be executed, after the results of the lines before it.
  private func reject(_ error: ErrorReply, id: JSONValue?) {
    surface.gateway.emitReady()
    append(.failure(error, id: id))
  }

  private func append(_ reply: ControlReply) {
    reply.append(to: &output)
    output.append(0x0A)
    exchange.wake()
  }
}

/// One change or query over HTTP that waits for its replies.
final class HTTPChange: Requester {
  let number: UInt64
  /// Why it was rejected, if it was.
  private(set) var rejection: ValidationError?
  private let wait: ControlRequest.Wait?
  /// Receives each reply; the last one once.
  private let onReply: (_ reply: ControlReply, _ change: HTTPChange, _ isLast: Bool) -> Void
  private(set) var isDone = false
  /// The properties that the change sets; several, if it is about a device or a scene.
  private var parts = 1
  /// The keys that are as far as is waited for, of several.
  private var ended: Set<String> = []

  init(
    number: UInt64,
    wait: ControlRequest.Wait?,
    onReply: @escaping (ControlReply, HTTPChange, Bool) -> Void
  ) {
    self.number = number
    self.wait = wait
    self.onReply = onReply
  }

  func expect(parts: Int) { self.parts = parts }

  func setRejection(_ reason: ValidationError) { rejection = reason }

  /// A reply after which nothing follows.
  func send(_ reply: ControlReply) { deliver(reply, isLast: true) }

  /// Receives a phase of the change.
  func receive(_ event: EventObject, id: JSONValue?, isFinal: Bool) {
    let isLast =
      switch event.phase {
      case .accepted: wait == nil
      case .sent: isFinal || wait != .confirmed
      case .sending: false
      case .superseded, .unchanged, .cancelled, .rejected, .confirmed, .failed, .expired: true
      }
    // Without a wait the only reply is the answer, which is late for a step that waits for the
    // device's state.
    guard wait != nil || isLast else { return }
    guard parts > 1 else { return deliver(.event(event, id: id), isLast: isLast) }
    guard !ended.contains(event.key) else { return }
    if isLast { ended.insert(event.key) }
    deliver(.event(event, id: id), isLast: ended.count == parts)
  }

  func pass(_ line: [UInt8], isFinal: Bool) {
    guard let reply = ControlReply(line: line.span) else { return }
    guard case .event(let event, let id) = reply else { return send(reply) }
    if let count = event.of, parts < count { expect(parts: count) }
    receive(event, id: id, isFinal: isFinal)
  }

  /// Delivers no further reply: the client is gone.
  func forget() { isDone = true }

  private func deliver(_ reply: ControlReply, isLast: Bool) {
    guard !isDone else { return }
    isDone = isLast
    onReply(reply, self, isLast)
  }
}
