// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Control
import Devices
import Glibc
import HTTP
import JSON
import LastOut
import Operations
import Values

/// HTTP: the same requests as on the control socket, for programs on other hosts and for browsers.
///
/// It translates requests into those of the control socket, and replies into responses.
final class HTTPSurface: HTTPService {
  /// The source of changes that name none.
  static let source = "http"

  unowned let gateway: GatewayHost
  let context: GatewayContext
  let documents: DeviceDocuments
  let streams: EventStreams
  private(set) var server: HTTPServer?
  /// Where it listens.
  private(set) var addresses: [String] = []
  private(set) var admission: RequestAdmission
  private let description = APIDescription()
  let time = GatewayTime()
  /// The answers to requests with an `Idempotency-Key`.
  private var answers = IdempotentAnswers<HTTPResponse>(capacity: 4 << 20)
  var panelDocument: PanelDocument
  /// The panel's files as they are sent, by their tags.
  var compressedFiles: [String: [UInt8]] = [:]
  /// Requests that wait for replies.
  private var changes: [UInt64: HTTPChange] = [:]
  private var batches: [ObjectIdentifier: ChangeBatch] = [:]
  /// Single requests that wait for a later phase.
  var waiting = 0
  /// Apart from the numbers of control connections.
  private var lastNumber = HTTPSurface.lowestNumber
  /// Requesters over HTTP have higher numbers; clients of the control socket have lower ones.
  static let lowestNumber: UInt64 = 1 << 63
  /// Locks of unix sockets, held as long as this lives, and the sockets' paths.
  private var locks: [Int32] = []
  private var paths: [String] = []

  /// Listens where the configuration says.
  init(_ configuration: HTTPConfiguration, gateway: GatewayHost) throws(OperationsError) {
    self.gateway = gateway
    context = gateway.context
    documents = DeviceDocuments(context)
    streams = try EventStreams(context, documents: documents, time: time)
    admission = RequestAdmission(configuration, log: context.log)
    panelDocument = PanelDocument(
      besideJournal: context.configuration.journal?.path,
      log: context.log
    )
    var limits = HTTPServer.Limits()
    limits.clients = context.configuration.limits.httpClients
    limits.body = context.configuration.limits.line
    server = try HTTPServer(loop: context.loop, limits: limits, service: self)
    streams.onTime = { [weak self] in self?.server?.answerResumed() }
    streams.onObserversChanged = { [unowned gateway] in gateway.events.updateObservers() }
    do throws(OperationsError) {
      for address in configuration.addresses { try listen(on: address, configuration) }
    } catch {
      close()
      throw error
    }
  }

  private func listen(
    on address: HTTPConfiguration.Address,
    _ configuration: HTTPConfiguration
  ) throws(OperationsError) {
    switch address {
    case .unix(let path):
      try SocketFile.makeFolder(of: path)
      locks.append(try SocketFile.lock(path + ".lock"))
      try server?.listen(on: try SocketFile.listen(at: path), isTrusted: true)
      paths.append(path)
      addresses.append("unix:\(path)")
      context.log.info("HTTP listens", ["address": "unix:\(path)"])
    case .tcp(let host, let port):
      let sockets = try HTTPListener.sockets(
        host: host,
        port: port,
        loopbackOnly: configuration.token == nil && configuration.trusted.isEmpty
      )
      for socket in sockets {
        try server?.listen(on: socket, isTrusted: false)
        addresses.append(HTTPListener.boundAddress(of: socket))
        context.log.info("HTTP listens", ["address": addresses.last ?? ""])
      }
    }
  }

  // MARK: - Shutdown

  /// Accepts no new connections; open ones stay until the last replies are sent.
  func stopListening() {
    server?.stopListening()
    for path in paths { unsafe unlink(path) }
    paths = []
  }

  func close() {
    stopListening()
    streams.close()
    for change in changes.values {
      change.send(.failure(ErrorReply(.stopping, "the gateway has ended"), id: nil))
    }
    for batch in batches.values { batch.close() }
    server?.answerResumed()
    server?.close()
    // The files stay: removed, they could be locked by two gateways.
    for lock in locks { Glibc.close(lock) }
    locks = []
  }

  /// Wakes the streams and resumed requests; call it after each batch.
  func advance(to now: Moment) {
    streams.advance(to: now)
    server?.answerResumed()
  }

  /// Says why the change of the next event is rejected although it was valid.
  func setRejection(_ reason: ValidationError, of event: CommandEvent) {
    if let origin = event.origin { changes[origin.replyTo]?.setRejection(reason) }
  }

  /// Delivers an event to its requester and to the streams.
  func receive(_ object: EventObject, of event: CommandEvent) {
    if let origin = event.origin, let change = changes[origin.replyTo] {
      var answer = object
      if origin.parts > 0, event.isAnswer { answer.of = origin.parts }
      change.receive(answer, id: origin.id, isFinal: event.isFinal)
    }
    documents.record(object)
    streams.append(object)
  }

  /// Ends a request that waits, with a reply.
  func endWait(_ number: UInt64, _ reply: ControlReply) { changes[number]?.send(reply) }

  /// Delivers an event of another member of the cluster to the streams.
  func receiveForeign(_ object: EventObject) {
    documents.record(object)
    streams.append(object)
  }

  // MARK: - Changes

  func makeChange(
    wait: ControlRequest.Wait?,
    onReply: @escaping (ControlReply, HTTPChange, Bool) -> Void
  ) -> HTTPChange {
    lastNumber += 1
    let change = HTTPChange(number: lastNumber, wait: wait) { [weak self] reply, change, isLast in
      if isLast { self?.remove(change) }
      onReply(reply, change, isLast)
    }
    changes[lastNumber] = change
    return change
  }

  func remove(_ change: HTTPChange) { changes[change.number] = nil }

  func perform(_ request: ControlRequest, for change: HTTPChange, line: Int) {
    gateway.requests.perform(request, for: change, line: line)
  }

  // MARK: - Requests

  func begin(_ exchange: HTTPExchange) {
    do throws(Problem) {
      let endpoint = try admission.admit(exchange)
      if exchange.request.method == "OPTIONS" {
        let allowed = HTTPHeader("Allow", endpoint.methods.joined(separator: ", "))
        return answer(exchange, HTTPResponse(status: 204, headers: [allowed], body: .bytes([])))
      }
      // A batch under conditions is executed as a whole.
      if endpoint == .changes, !ChangeConditions.areStated(in: exchange.request) {
        let batch = makeBatch(exchange)
        exchange.onBody = { batch.receive($0) }
      } else {
        exchange.refuseLongBody()
      }
    } catch {
      let page = RefusedPage.response(to: exchange.request, error, from: exchange.peer)
      answer(exchange, page ?? error.response)
    }
  }

  /// The API's own description, as it is for this client.
  func description(for exchange: HTTPExchange) -> [UInt8] {
    description.document(
      needsToken: admission.needsToken(exchange),
      prefix: admission.client(of: exchange)?.prefix ?? ""
    )
  }

  func connectionRefused(reason: String, at now: Moment) {
    admission.connectionRefused(reason: reason, at: now)
  }

  // MARK: - Answers

  func answer(_ exchange: HTTPExchange, _ response: HTTPResponse) {
    keep(response, for: exchange)
    exchange.respond(response)
  }

  /// Keeps the answer to a request with a key, unless it says that the client should repeat it.
  private func keep(_ response: HTTPResponse, for exchange: HTTPExchange) {
    guard let key = exchange.idempotencyKey else { return }
    exchange.idempotencyKey = nil
    if case .bytes(let body) = response.body, response.status != 429, response.status != 503 {
      answers.record(response, size: body.count, of: key, at: EventLoop.now())
    } else {
      answers.forget(key)
    }
  }

  /// Checks the conditions of a change; `false` if it was answered as before.
  ///
  /// - Throws: Why it is not executed.
  func mayExecute(_ exchange: HTTPExchange) throws(Problem) -> Bool {
    let request = exchange.request
    let conditions = try ChangeConditions(request)
    let now = EventLoop.now()
    if let key = conditions.idempotencyKey {
      switch answers.begin(key, fingerprint: request.fingerprint, at: now) {
      case .execute: exchange.idempotencyKey = key
      case .answered(let response):
        exchange.respond(response)
        return false
      case .unanswered:
        throw Problem(409, "in_progress", "a request with this Idempotency-Key is being executed")
      case .reused:
        throw Problem(422, "key_reused", "another request had this Idempotency-Key")
      case .full:
        throw Problem(
          429,
          ErrorCode.limit.rawValue,
          "too many requests with an Idempotency-Key wait for their answers",
          headers: [HTTPHeader("Retry-After", "5")]
        )
      }
    }
    let milliseconds = time.milliseconds(at: now)
    if let limit = conditions.notAfter, milliseconds > limit {
      throw Problem(
        410,
        "too_late",
        "the request came \(milliseconds - limit) ms after its Settle-Not-After",
        members: [.init("time_ms", .integer(milliseconds))]
      )
    }
    return true
  }

  func answer(_ exchange: HTTPExchange, _ json: JSONValue, status: Int = 200) {
    let bytes = JSONWriter.bytes(json) + [0x0A]
    var response = HTTPResponse(status: status, type: "application/json", bytes)
    if bytes.count >= DocumentStream.compressedSize, acceptsGzip(exchange) {
      response.body = .bytes(GzipWriter.quick(bytes))
      response.headers += [Self.gzip, Self.varies]
    }
    answer(exchange, response)
  }

  /// Answers with a document that may be long.
  func answer(_ exchange: HTTPExchange, type: String, _ document: some PartialDocument) {
    let stream = DocumentStream(document, isCompressed: acceptsGzip(exchange))
    var headers = [HTTPHeader("Content-Type", type)]
    if stream.isCompressed { headers += [Self.gzip, Self.varies] }
    answer(exchange, HTTPResponse(status: 200, headers: headers, body: stream.body))
  }

  func acceptsGzip(_ exchange: HTTPExchange) -> Bool {
    ContentCoding.acceptsGzip(exchange.request.values(of: "Accept-Encoding"))
  }

  static let gzip = HTTPHeader("Content-Encoding", "gzip")
  static let varies = HTTPHeader("Vary", "Accept-Encoding")

  func refuse(_ exchange: HTTPExchange, _ problem: Problem) {
    answer(exchange, problem.response)
  }

  // MARK: - Batches

  private func makeBatch(_ exchange: HTTPExchange) -> ChangeBatch {
    let batch = ChangeBatch(
      exchange: exchange,
      surface: self,
      lineLimit: context.configuration.limits.line
    )
    batches[ObjectIdentifier(exchange)] = batch
    exchange.onEnd = { _ in batch.clientLeft() }
    return batch
  }

  /// Ends a batch's request; one that was collected is executed now.
  func endBatch(_ exchange: HTTPExchange) {
    if let batch = batches[ObjectIdentifier(exchange)] { return batch.end() }
    let batch = makeBatch(exchange)
    let body = exchange.request.body
    batch.receive(body.span)
    batch.end()
  }

  func remove(_ batch: ChangeBatch, of exchange: HTTPExchange) {
    batches[ObjectIdentifier(exchange)] = nil
  }
}

/// Several properties of a device in one request.
extension HTTPSurface {
  /// Sets properties of a device, and responds when all of them are as far as the client waits for.
  func setDevice(_ id: String, _ exchange: HTTPExchange) throws(Problem) {
    try setSeveral(try ChangeBody.deviceRequest(id, from: exchange.request), exchange)
  }

  /// Sets a scene, and responds as for several properties of a device.
  func setScene(_ id: String, _ exchange: HTTPExchange) throws(Problem) {
    let request = try ChangeBody.sceneRequest(id, from: exchange.request)
    do throws(ValidationError) {
      _ = try context.registry.scene(id)
    } catch {
      throw HTTPProblems.problem(gateway.requests.suggesting(error, at: EventLoop.now()), key: nil)
    }
    try setSeveral(request, exchange)
  }

  private func setSeveral(
    _ request: ControlRequest,
    _ exchange: HTTPExchange
  ) throws(Problem) {
    var request = request
    request.source = request.source ?? Self.source
    let wait = request.wait
    if wait != nil { try checkRoomToLast(asStream: false) }
    // The newest event of each property, in the order in which they were first heard.
    var events: [EventObject] = []
    perform(request, exchange, wait: wait) { reply in
      guard case .event(let event, _) = reply else { return }
      if let place = events.firstIndex(where: { $0.key == event.key }) {
        events[place] = event
      } else {
        events.append(event)
      }
    } onEnd: { [weak self] exchange, reply, change in
      switch reply {
      case .event: self?.answer(exchange, events, isAccepted: wait == nil, to: change)
      case .failure(let failure, _): self?.refuse(exchange, HTTPProblems.problem(failure))
      case .targets, .pending, .described, .flushed, .cancelled, .watched, .recorded, .reloaded,
        .status, .logged, .devices, .words, .previewed:
        preconditionFailure("A change is answered with events.")
      }
    }
  }

  private func answer(
    _ exchange: HTTPExchange,
    _ events: [EventObject],
    isAccepted: Bool,
    to change: HTTPChange
  ) {
    let list = JSONValue.Member("events", .array(events.map(\.json)))
    guard let bad = events.first(where: \.endedBadly) else {
      return answer(exchange, .object([list]), status: isAccepted ? 202 : 200)
    }
    var problem = HTTPProblems.problem(bad, rejection: change.rejection)
    if events.count > 1 { problem.members.append(list) }
    refuse(exchange, problem)
  }
}

extension EventObject {
  /// Whether the change ended without being sent, confirmed or unnecessary.
  fileprivate var endedBadly: Bool {
    switch phase {
    case .accepted, .unchanged, .sending, .sent, .confirmed: false
    case .superseded, .cancelled, .rejected, .failed, .expired: true
    }
  }
}

/// Requests for event streams, and the room that they leave for others.
extension HTTPSurface {
  /// How many connections may be streams, so that changes still get in; and how many may be streams
  /// or waiting changes, so that quick requests still do.
  private var limits: (streams: Int, lasting: Int) {
    let clients = context.configuration.limits.httpClients
    return (max(1, clients - max(1, clients / 4)), max(1, clients - max(1, clients / 8)))
  }

  /// Refuses one more stream, or one more request that would wait.
  func checkRoomToLast(asStream isStream: Bool) throws(Problem) {
    let (streamLimit, lastingLimit) = limits
    let message: String
    if isStream, streams.count >= streamLimit {
      message = "\(streamLimit) event streams are open, which is the limit"
    } else if streams.count + waiting >= lastingLimit {
      message = "\(lastingLimit) streams and waiting requests are open, which is the limit"
    } else {
      return
    }
    throw Problem(
      503,
      ErrorCode.limit.rawValue,
      message,
      headers: [HTTPHeader("Retry-After", "5")]
    )
  }

  func serveEvents(_ exchange: HTTPExchange) throws(Problem) {
    let pattern = try eventPattern(exchange.request)
    let withStates = try ChangeBody.flag("states", of: exchange.request)
    if exchange.request.method == "HEAD" {
      return answer(exchange, HTTPResponse(type: EventStreamText.mediaType, []))
    }
    try checkRoomToLast(asStream: true)
    let stream = streams.open(
      exchange,
      pattern: pattern,
      lastID: exchange.request.value(of: "Last-Event-ID"),
      withStates: withStates
    )
    answer(
      exchange,
      HTTPResponse(
        status: 200,
        headers: [
          HTTPHeader("Content-Type", EventStreamText.mediaType),
          HTTPHeader("X-Accel-Buffering", "no"),
        ],
        body: .stream(stream)
      )
    )
  }

  private func eventPattern(_ request: HTTPRequest) throws(Problem) -> Pattern? {
    guard let text = try ChangeBody.pattern(of: request, beside: ["states"]) else { return nil }
    if let mistake = KeySyntax.deviceProperty.mistake(inPattern: text) {
      throw HTTPProblems.problem(.badKey, mistake)
    }
    do throws(ValidationError) {
      return try gateway.requests.watchPattern(text)
    } catch {
      throw HTTPProblems.problem(gateway.requests.suggesting(error, at: EventLoop.now()), key: text)
    }
  }
}

/// The OpenAPI document, for clients that need a token and for those that need none.
struct APIDescription {
  private let open: [UInt8]
  private let guarded: [UInt8]

  init() {
    open = Self.document(["security": .array([])])
    guarded = Self.document(["security": .array([.object([.init("token", .array([]))])])])
  }

  /// The document for a client that sees this gateway under `prefix`.
  func document(needsToken: Bool, prefix: String) -> [UInt8] {
    guard !prefix.isEmpty else { return needsToken ? guarded : open }
    return Self.document([
      "security": .array([]),
      "servers": .array([.object([.init("url", .string(prefix + "/"))])]),
    ])
  }

  /// The document of the build with other members.
  private static func document(_ others: [String: JSONValue]) -> [UInt8] {
    let bytes = OpenAPIDocument.bytes
    guard case .object(var members)? = try? JSONParser.parse(bytes.span) else { return bytes }
    for place in members.indices {
      if let other = others[members[place].name] { members[place].value = other }
    }
    return JSONWriter.bytes(.object(members)) + [0x0A]
  }
}
