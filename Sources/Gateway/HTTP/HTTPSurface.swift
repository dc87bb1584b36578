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

/// HTTP: the same requests as on the control socket, for programs on other hosts and for browsers.
///
/// What a change means, who is answered and what `get` shows is the gateway's; this translates.
final class HTTPSurface: HTTPService {
  /// The source of changes that name none.
  static let source = "http"

  unowned let gateway: GatewayHost
  private(set) var server: HTTPServer?
  private let hosts: HostRule
  private var tokens: TokenGuard?
  private let description = APIDescription()
  private var log: RefusalLog
  /// Requests that wait for the gateway's word.
  private var changes: [UInt64: HTTPChange] = [:]
  private var batches: [ObjectIdentifier: ChangeBatch] = [:]
  /// Single requests that wait for a later phase.
  var waiting = 0
  /// Apart from the numbers of control connections.
  private var lastNumber = HTTPSurface.lowestNumber
  /// Who asks over HTTP has a number above; clients of the control socket have lower ones.
  static let lowestNumber: UInt64 = 1 << 63
  /// Locks of unix sockets, held as long as this lives, and the sockets' paths.
  private var locks: [Int32] = []
  private var paths: [String] = []

  /// The last events, for everybody who streams them.
  var buffer: EventBuffer
  var streams: [ObjectIdentifier: EventStream] = [:]
  /// How many of them want to know where keys stand.
  var stateStreams = 0
  /// How the last command of a key came to nothing, as far as it did; one for each key at most.
  var failures: [String: EventObject] = [:]
  /// Somebody streamed once, and may come again for what was missed.
  var hasStreamed = false
  /// Events have come that the streams were not told of.
  var hasNews = false
  var toldAt: Moment?
  var streamTimer: LoopTimer?
  /// Clients of event streams that were cut off, by reason.
  var droppedStreams: [String: UInt64] = [:]

  /// Listens where the configuration says.
  init(_ configuration: HTTPConfiguration, gateway: GatewayHost) throws(OperationsError) {
    self.gateway = gateway
    hosts = HostRule(names: Self.names(configuration))
    tokens = configuration.token.map { TokenGuard(token: $0) }
    log = RefusalLog(log: gateway.log)
    let gatewayLimits = gateway.configuration.limits
    // A number that no earlier life of this gateway has given.
    let start = UInt64(max(1, WallClock.milliseconds())) * 1000
    buffer = EventBuffer(capacity: gatewayLimits.events, startingAt: start)
    var limits = HTTPServer.Limits()
    limits.clients = gatewayLimits.httpClients
    limits.body = gatewayLimits.line
    server = try HTTPServer(loop: gateway.loop, limits: limits, service: self)
    streamTimer = try gateway.loop.makeTimer(named: "event streams") { [weak self] in
      self?.streamTimePassed()
    }
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
      gateway.log.info("HTTP listens", ["address": "unix:\(path)"])
    case .tcp(let host, let port):
      let sockets = try HTTPListener.sockets(
        host: host,
        port: port,
        loopbackOnly: configuration.token == nil
      )
      for socket in sockets {
        try server?.listen(on: socket, isTrusted: false)
        gateway.log.info("HTTP listens", ["address": HTTPListener.boundAddress(of: socket)])
      }
    }
  }

  /// What this gateway is called: the names it listens at, and this machine's.
  private static func names(_ configuration: HTTPConfiguration) -> [String] {
    let own = HostName.current
    return configuration.hosts + [own, "\(own).local"]
      + configuration.addresses.compactMap { address in
        if case .tcp(let host, _) = address { host } else { nil }
      }
  }

  /// Whether every event is of interest.
  var isWatching: Bool { hasStreamed }

  /// Whether some stream wants to know where keys stand.
  var isStateWatching: Bool { stateStreams > 0 }

  // MARK: - Life

  /// Takes no new connections; those that are open stay to hear the end.
  func stopListening() {
    server?.stopListening()
    for path in paths { unsafe unlink(path) }
    paths = []
  }

  func close() {
    stopListening()
    for stream in streams.values { stream.end() }
    for change in changes.values {
      change.send(.failure(ErrorReply(.stopping, "the gateway has ended"), id: nil))
    }
    for batch in batches.values { batch.close() }
    server?.settle()
    server?.close()
    streamTimer?.cancel()
    // The files stay: removed, they could be locked by two gateways.
    for lock in locks { Glibc.close(lock) }
    locks = []
  }

  /// Tells streams what is new, and lets resumed requests go on; after each batch.
  func settle(at now: Moment) {
    if hasNews { tellStreams(at: now) }
    server?.settle()
  }

  /// Why the command of an event that follows is refused after all.
  func note(_ refusal: ValidationError, of event: CommandEvent) {
    if let origin = event.origin { changes[origin.replyTo]?.note(refusal) }
  }

  /// A phase of some command: for whoever asked for it, and for the streams.
  func receive(_ object: EventObject, of event: CommandEvent) {
    if let origin = event.origin, let change = changes[origin.replyTo] {
      change.tell(object, id: origin.id, isFinal: event.isFinal)
    }
    remember(object)
    append(object)
  }

  // MARK: - Changes

  func makeChange(
    wait: ControlRequest.Wait?,
    hear: @escaping (ControlReply, HTTPChange, Bool) -> Void
  ) -> HTTPChange {
    lastNumber += 1
    let change = HTTPChange(number: lastNumber, wait: wait) { [weak self] reply, change, isLast in
      if isLast { self?.remove(change) }
      hear(reply, change, isLast)
    }
    changes[lastNumber] = change
    return change
  }

  func remove(_ change: HTTPChange) { changes[change.number] = nil }

  func perform(_ request: ControlRequest, for change: HTTPChange, line: Int) {
    gateway.perform(request, on: change, line: line)
  }

  // MARK: - Requests

  func begin(_ exchange: HTTPExchange) {
    do throws(Problem) {
      let endpoint = try admit(exchange)
      if exchange.request.method == "OPTIONS" {
        let allowed = HTTPHeader("Allow", endpoint.methods.joined(separator: ", "))
        return answer(exchange, HTTPResponse(status: 204, headers: [allowed], body: .bytes([])))
      }
      if endpoint == .changes {
        let batch = ChangeBatch(
          exchange: exchange,
          surface: self,
          lineLimit: gateway.configuration.limits.line
        )
        batches[ObjectIdentifier(exchange)] = batch
        exchange.onBody = { batch.take($0) }
        exchange.onEnd = { [weak self, weak exchange] _ in
          batch.close()
          if let exchange { self?.batches[ObjectIdentifier(exchange)] = nil }
        }
      } else {
        exchange.refuseLongBody()
      }
    } catch {
      refuse(exchange, error)
    }
  }

  /// Looks at where a request comes from and what it is about, in this order: the host it takes us
  /// for, the page it comes from, its token, its path, its body's type.
  private func admit(_ exchange: HTTPExchange) throws(Problem) -> Endpoint {
    let request = exchange.request
    if !exchange.isTrusted {
      try checkHost(request, from: exchange.peer)
      if let mistake = OriginRule.mistake(in: request) {
        throw refusal(403, "wrong_origin", mistake, from: exchange.peer)
      }
    }
    let found: Result<Endpoint, Problem>
    do throws(Problem) {
      found = .success(try Router.endpoint(request.method, request.target.path))
    } catch {
      found = .failure(error)
    }
    if !exchange.isTrusted, (try? found.get())?.isOpen != true { try checkToken(exchange) }
    let endpoint = try found.get()
    try checkBody(request, endpoint)
    return endpoint
  }

  private func checkHost(_ request: HTTPRequest, from peer: String) throws(Problem) {
    guard let host = request.target.authority ?? request.value(of: "Host") else {
      throw Problem(400, "bad_request", "the Host header is missing")
    }
    guard hosts.takes(host) else {
      throw refusal(
        421,
        "wrong_host",
        "'\(Excerpt.of(host))' is not this gateway; use its address, a name in http.listen or "
          + "one in http.hosts",
        from: peer
      )
    }
  }

  private func checkToken(_ exchange: HTTPExchange) throws(Problem) {
    guard tokens != nil else { return }
    let verdict = tokens?.judge(
      exchange.request.values(of: "Authorization"),
      from: exchange.peer,
      at: EventLoop.now()
    )
    switch verdict {
    case .welcome: return
    case .missing, nil:
      throw Problem(
        401,
        "unauthorized",
        "a token is needed: 'Authorization: Bearer TOKEN'",
        headers: [HTTPHeader("WWW-Authenticate", "Bearer realm=\"settle\"")]
      )
    case .wrong:
      var problem = refusal(401, "unauthorized", "the token is wrong", from: exchange.peer)
      problem.headers = [
        HTTPHeader("WWW-Authenticate", "Bearer realm=\"settle\", error=\"invalid_token\"")
      ]
      throw problem
    case .tooMany(let wait):
      var problem = refusal(
        429,
        "too_many_tokens",
        "too many wrong tokens came from this address; one a second is looked at",
        from: exchange.peer
      )
      problem.headers = [HTTPHeader("Retry-After", String(max(1, Int(wait / .seconds(1)))))]
      throw problem
    }
  }

  /// The API's own description, as it is for this client.
  func description(for exchange: HTTPExchange) -> [UInt8] {
    exchange.isTrusted || tokens == nil ? description.open : description.guarded
  }

  private func checkBody(_ request: HTTPRequest, _ endpoint: Endpoint) throws(Problem) {
    let allowed = endpoint.mediaTypes(request.method)
    guard request.hasBody || request.mediaType != nil else { return }
    if allowed.isEmpty {
      guard !request.hasBody else {
        throw Problem(400, "bad_request", "'\(request.method)' takes no body here")
      }
      return
    }
    guard allowed.contains(request.mediaType ?? "") else {
      let found = request.mediaType.map { "'\(Excerpt.of($0))'" } ?? "none"
      throw Problem(
        415,
        "media_type",
        "Content-Type must be \(allowed.joined(separator: " or ")); found \(found)",
        members: [.init("allowed", .array(allowed.map { .string($0) }))]
      )
    }
  }

  /// A refusal that an operator hears of.
  private func refusal(
    _ status: Int,
    _ code: String,
    _ detail: String,
    from peer: String
  ) -> Problem {
    log.note(code, peer: peer, at: EventLoop.now())
    return Problem(status, code, detail)
  }

  func connectionRefused(reason: String, at now: Moment) {
    log.note(reason, peer: "", at: now)
  }

  /// Refusals that an operator hears of, by reason.
  var refusals: [String: UInt64] { log.totals }

  // MARK: - Answers

  func answer(_ exchange: HTTPExchange, _ response: HTTPResponse) {
    exchange.respond(response)
  }

  func answer(_ exchange: HTTPExchange, _ json: JSONValue, status: Int = 200) {
    answer(
      exchange,
      HTTPResponse(status: status, type: "application/json", JSONWriter.bytes(json) + [0x0A])
    )
  }

  func refuse(_ exchange: HTTPExchange, _ problem: Problem) {
    answer(exchange, problem.response)
  }

  /// Ends a batch's request.
  func end(_ exchange: HTTPExchange) -> Bool {
    guard let batch = batches[ObjectIdentifier(exchange)] else { return false }
    batch.end()
    return true
  }
}
