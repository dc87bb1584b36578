// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import Durability
import GatewayCore
import HTTP
import JSON
import Journal
import LastOut
import Operations
import Panel
import Values

/// What each path does.
extension HTTPSurface {
  func complete(_ exchange: HTTPExchange) {
    do throws(Problem) {
      let method = exchange.request.method
      let endpoint = try Router.endpoint(method, exchange.request.target.path)
      if endpoint.isChanged(by: method), try !mayExecute(exchange) { return }
      try serve(endpoint, exchange)
    } catch {
      refuse(exchange, error)
    }
  }

  private func serve(_ endpoint: Endpoint, _ exchange: HTTPExchange) throws(Problem) {
    let request = exchange.request
    switch endpoint {
    case .changes:
      try ChangeBody.checkQuery(request, allowed: [])
      endBatch(exchange)
    case .property(let key):
      guard request.method == "PUT" else { return try serveProperty(key, exchange) }
      try change("set", key, exchange)
    case .device(let id) where request.method == "PUT": try setDevice(id, exchange)
    case .scene(let id): try setScene(id, exchange)
    case .step(let key): try change("step", key, exchange)
    case .toggle(let key): try change("toggle", key, exchange)
    case .pending, .flush, .cancel: try servePattern(endpoint, exchange)
    case .history: try serveHistory(exchange)
    case .events: try serveEvents(exchange)
    case .panelDocument: try servePanelDocument(exchange)
    case .panel(let name, let version): try servePanel(name, version, exchange)
    case .devices, .device, .status, .metrics, .health, .readiness, .openAPI:
      try ChangeBody.checkQuery(request, allowed: [])
      try serveDocument(endpoint, exchange)
    }
  }

  private func serveDocument(_ endpoint: Endpoint, _ exchange: HTTPExchange) throws(Problem) {
    switch endpoint {
    case .devices:
      let imports = gateway.imports?.report(at: EventLoop.now())
      answer(exchange, type: "application/json", DeviceListing(documents, context, imports))
    case .device(let id):
      do throws(ValidationError) {
        let device = try context.registry.deviceIndex(of: id)
        answer(exchange, documents.deviceObject(device, at: EventLoop.now()))
      } catch {
        throw HTTPProblems.problem(
          gateway.requests.suggesting(error, at: EventLoop.now()),
          key: nil
        )
      }
    case .metrics:
      let report = MetricsReport(context, mqtt: gateway.mqtt, http: self)
      answer(exchange, type: MetricsText.mediaType, report)
    case .status: answer(exchange, gateway.status(at: EventLoop.now()).json)
    case .health:
      let milliseconds = time.milliseconds(at: EventLoop.now())
      answer(exchange, .object(["status": "alive", "time_ms": .integer(milliseconds)]))
    case .readiness:
      if let (code, reason) = trouble {
        throw Problem(503, code, reason, headers: [HTTPHeader("Retry-After", "5")])
      }
      answer(exchange, .object(["status": "ready"]))
    case .openAPI:
      answer(exchange, HTTPResponse(type: "application/json", description(for: exchange)))
    case .changes, .property, .step, .toggle, .scene, .pending, .history, .flush, .cancel, .events,
      .panelDocument, .panel:
      preconditionFailure("Only documents are served here.")
    }
  }

  /// Why changes cannot leave, or do not survive a crash.
  private var trouble: (code: String, reason: String)? {
    if context.core.isShuttingDown { return ("stopping", "the gateway is shutting down") }
    guard context.core.isConnected else { return ("not_ready", "the broker is not connected") }
    if let cluster = gateway.cluster, !cluster.isMember {
      return ("not_ready", "this gateway has not joined its cluster: \(cluster.obstacle)")
    }
    return context.core.storeFault.map {
      let store = gateway.cluster == nil ? "journal" : "cluster's engine"
      return ("not_durable", "the \(store) cannot be written: \($0)")
    }
  }

  private func serveProperty(_ key: String, _ exchange: HTTPExchange) throws(Problem) {
    try ChangeBody.checkQuery(exchange.request, allowed: [])
    do throws(ValidationError) {
      let index = try context.registry.index(of: key)
      answer(exchange, documents.propertyObject(index, at: EventLoop.now()))
    } catch {
      throw HTTPProblems.problem(gateway.requests.suggesting(error, at: EventLoop.now()), key: key)
    }
  }

  /// The most keys of a request for history.
  private static let historyLimit = 64

  /// What devices reported of one key or of several, with the age of each value and of the last
  /// report.
  private func serveHistory(_ exchange: HTTPExchange) throws(Problem) {
    let query = exchange.request.target.query
    try ChangeBody.checkQuery(exchange.request, allowed: ["key"], repeatable: "key")
    guard let first = query.first?.value else {
      throw HTTPProblems.problem(
        .missingKey,
        "which key? ?key=DEVICE/PROPERTY is needed"
      )
    }
    guard query.count <= Self.historyLimit else {
      throw Problem(
        422,
        ErrorCode.limit.rawValue,
        "at most \(Self.historyLimit) keys; found \(query.count)"
      )
    }
    var points: [JSONValue.Member] = []
    var ages: [JSONValue.Member] = []
    for parameter in query where !points.contains(where: { $0.name == parameter.value }) {
      let found = try history(of: parameter.value)
      points.append(.init(parameter.value, .array(found.points)))
      if let age = found.age { ages.append(.init(parameter.value, .integer(age))) }
    }
    guard query.count == 1 else {
      return answer(exchange, .object(["keys": .object(points), "ages_ms": .object(ages)]))
    }
    var single: [JSONValue.Member] = [.init("key", .string(first))]
    if let age = ages.first { single.append(.init("age_ms", age.value)) }
    answer(exchange, .object(single + [.init("points", points[0].value)]))
  }

  /// The points of a key, and how many milliseconds ago it was reported last.
  private func history(of key: String) throws(Problem) -> (points: [JSONValue], age: Int64?) {
    let now = EventLoop.now()
    let reports = context.core.reportHistory
    do throws(ValidationError) {
      let index = try context.registry.index(of: key)
      let points = reports.points(of: index, at: now).map { point in
        JSONValue.object([
          "age_ms": .integer(point.age.wholeMilliseconds), "value": point.value.json,
        ])
      }
      return (points, reports.lastReport(of: index, at: now)?.wholeMilliseconds)
    } catch {
      throw HTTPProblems.problem(gateway.requests.suggesting(error, at: now), key: key)
    }
  }

  /// Pending, flush and cancel: about all keys that a pattern names.
  private func servePattern(_ endpoint: Endpoint, _ exchange: HTTPExchange) throws(Problem) {
    let pattern = try ChangeBody.pattern(of: exchange.request)
    let name: String
    switch endpoint {
    case .pending: name = "pending"
    case .flush: name = "flush"
    default:
      name = "cancel"
      guard pattern != nil else {
        throw HTTPProblems.problem(
          .missingKey,
          "which keys? ?key=PATTERN is needed; * names all"
        )
      }
    }
    var request: ControlRequest
    do throws(GrammarError) {
      request = try ControlRequest(.object([.init(name, .string(pattern ?? "*"))]))
    } catch {
      throw HTTPProblems.problem(error)
    }
    request.source = Self.source
    perform(request, exchange, wait: nil)
  }

  private func change(
    _ operation: String,
    _ key: String,
    _ exchange: HTTPExchange
  ) throws(Problem) {
    var request = try ChangeBody.request(operation, key: key, from: exchange.request)
    request.source = request.source ?? Self.source
    if request.wait != nil { try checkRoomToLast(asStream: false) }
    perform(request, exchange, wait: request.wait)
  }

  private func perform(
    _ request: ControlRequest,
    _ exchange: HTTPExchange,
    wait: ControlRequest.Wait?
  ) {
    perform(request, exchange, wait: wait) { _ in
    } onEnd: { [weak self] exchange, reply, change in
      self?.answer(exchange, reply, to: change)
    }
  }

  /// Executes a request; `onReply` receives each reply, and `onEnd` the last one too.
  func perform(
    _ request: ControlRequest,
    _ exchange: HTTPExchange,
    wait: ControlRequest.Wait?,
    onReply: @escaping (ControlReply) -> Void,
    onEnd: @escaping (HTTPExchange, ControlReply, HTTPChange) -> Void
  ) {
    let change = makeChange(wait: wait) { [weak self] reply, change, isLast in
      onReply(reply)
      guard isLast else { return }
      if wait != nil, exchange.onEnd != nil { self?.waiting -= 1 }
      exchange.onEnd = nil
      onEnd(exchange, reply, change)
    }
    if wait != nil { waiting += 1 }
    exchange.onEnd = { [weak self, weak exchange] _ in
      if wait != nil { self?.waiting -= 1 }
      // The answer is kept for a repetition.
      guard exchange?.idempotencyKey == nil else { return }
      change.forget()
      self?.remove(change)
    }
    var request = request
    request.by = admission.client(of: exchange)?.person
    perform(request, for: change, line: 1)
  }

  private func answer(_ exchange: HTTPExchange, _ reply: ControlReply, to change: HTTPChange) {
    switch reply {
    case .event(let event, _):
      switch event.phase {
      case .accepted: answer(exchange, event.json, status: 202)
      case .unchanged, .sending, .sent, .confirmed: answer(exchange, event.json)
      case .superseded, .cancelled, .rejected, .failed, .expired:
        refuse(exchange, HTTPProblems.problem(event, rejection: change.rejection))
      }
    case .pending(let rows, _):
      answer(exchange, .object(["pending": .array(rows.map(\.json))]))
    case .flushed(let count, _): answer(exchange, .object(["flushed": .integer(Int64(count))]))
    case .cancelled(let count, _):
      answer(exchange, .object(["cancelled": .integer(Int64(count))]))
    case .failure(let failure, _): refuse(exchange, HTTPProblems.problem(failure))
    case .targets, .described, .watched, .recorded, .reloaded, .status, .logged, .devices, .words,
      .previewed:
      preconditionFailure("This request does not exist over HTTP.")
    }
  }
}

/// The panel: a page and its files, the same for everybody, and no secret.
extension HTTPSurface {
  func servePanel(_ name: String?, _ version: String?, _ exchange: HTTPExchange) throws(Problem) {
    guard let file = name.map(PanelFile.named) ?? .page else {
      throw Problem(404, "not_found", "the panel has no file of that name")
    }
    let isCompressed = file.isText && acceptsGzip(exchange)
    let tag = isCompressed ? "\(file.tag.dropLast())-gzip\"" : file.tag
    let policy = PanelFile.contentSecurityPolicy(isProxied: admission.client(of: exchange) != nil)
    // A browser keeps what the page names with its version. It may keep a copy of the rest too, and
    // asks each time whether that is current.
    let isFixed = version == PanelFile.version
    var headers = [
      HTTPHeader("Cache-Control", isFixed ? "max-age=31536000, immutable" : "no-cache"),
      HTTPHeader("ETag", tag), HTTPHeader("Content-Security-Policy", policy), Self.varies,
    ]
    guard !isKnown(tag, to: exchange.request) else {
      return answer(exchange, HTTPResponse(status: 304, headers: headers, body: .bytes([])))
    }
    headers.append(HTTPHeader("Content-Type", file.mediaType))
    if isCompressed { headers.append(Self.gzip) }
    let bytes = isCompressed ? compressed(file) : file.bytes
    answer(exchange, HTTPResponse(status: 200, headers: headers, body: .bytes(bytes)))
  }

  /// The compressed file, which is made at the first request for it.
  private func compressed(_ file: PanelFile) -> [UInt8] {
    if let bytes = compressedFiles[file.tag] { return bytes }
    let bytes = GzipWriter.best(file.bytes)
    compressedFiles[file.tag] = bytes
    return bytes
  }

  /// Whether the client has this version already.
  private func isKnown(_ tag: String, to request: HTTPRequest) -> Bool {
    request.values(of: "If-None-Match").contains { list in
      list.split(separator: ",").contains { entry in
        let text = entry.trimmed
        return text == "*" || (text.hasPrefix("W/") ? text.dropFirst(2) : text) == tag
      }
    }
  }
}

/// All devices, the scenes, the broker and what was imported, as `GET /v1/devices` lists them; each device as it is
/// when written.
///
/// A device's number stays valid after a reload, even if the device is gone.
struct DeviceListing: PartialDocument {
  private let documents: DeviceDocuments
  private let context: GatewayContext
  private var rest: ArraySlice<Int>
  private var hasBegun = false
  private let imports: StatusReport.Import?

  init(_ documents: DeviceDocuments, _ context: GatewayContext, _ imports: StatusReport.Import?) {
    self.documents = documents
    self.imports = imports
    self.context = context
    rest = context.registry.deviceNumbers[...]
  }

  mutating func appendPart(to bytes: inout [UInt8]) -> Bool {
    if !hasBegun { bytes.append(contentsOf: #"{"devices":["#.utf8) }
    guard let number = rest.popFirst() else {
      let broker = JSONValue.object(["connected": .boolean(context.core.isConnected)])
      bytes.append(contentsOf: #"],"scenes":"#.utf8)
      let scenes = context.registry.scenes.map { JSONValue.object(["id": .string($0.id)]) }
      JSONWriter.append(.array(scenes), to: &bytes)
      bytes.append(contentsOf: #","broker":"#.utf8)
      JSONWriter.append(broker, to: &bytes)
      if let imports {
        bytes.append(contentsOf: #","import":"#.utf8)
        JSONWriter.append(Self.summary(imports), to: &bytes)
      }
      bytes.append(contentsOf: "}\n".utf8)
      return false
    }
    if hasBegun { bytes.append(UInt8(ascii: ",")) }
    hasBegun = true
    JSONWriter.append(documents.deviceObject(number, at: EventLoop.now()), to: &bytes)
    return true
  }

  /// What was added last, once it is in use, and how much was refused.
  private static func summary(_ imports: StatusReport.Import) -> JSONValue {
    let last = imports.unused == nil ? imports : StatusReport.Import()
    return .object([
      "added": .array(last.added.map { .string($0) }),
      "added_count": .integer(Int64(last.addedCount)),
      "added_at": last.addedAt.map { .integer(Int64($0)) } ?? .null,
      "refused_count": .integer(Int64(imports.refusedCount)),
    ])
  }
}
