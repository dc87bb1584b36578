// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import GatewayCore
import HTTP
import JSON
import LastOut
import Operations
import Values

/// Decides which requests are admitted: by the host that they name, the page that they come from,
/// their token, their path and the type of their body.
///
/// A trusted proxy has asked its clients for whatever it needs: they need no token, and are at the
/// host that the proxy says.
struct RequestAdmission {
  private let hosts: HostRule
  private let trusted: TrustedPeers
  private let isGuarded: Bool
  private var tokens: TokenGuard?
  private let log: Logger
  /// Refusals that an operator should know of, by reason.
  private var tallies: [String: RejectionTally] = [:]

  init(_ configuration: HTTPConfiguration, log: Logger) {
    hosts = HostRule(names: Self.names(configuration))
    trusted = configuration.trustedPeers
    isGuarded = configuration.needsToken
    tokens = configuration.token.map { TokenGuard(token: $0) }
    self.log = log
  }

  /// The number of refusals that an operator should know of, by reason.
  var refusals: [String: UInt64] { tallies.mapValues(\.total) }

  /// Whether a client needs a token.
  func needsToken(_ exchange: HTTPExchange) -> Bool {
    isGuarded && !exchange.isTrusted && !isProxied(exchange)
  }

  /// Whether a trusted proxy sent a request.
  private func isProxied(_ exchange: HTTPExchange) -> Bool { trusted.contains(exchange.peer) }

  /// What a trusted proxy says about its client; `nil` for requests of all others.
  func client(of exchange: HTTPExchange) -> ForwardedClient? {
    isProxied(exchange) ? ForwardedClient(exchange.request) : nil
  }

  /// The address of the client, behind trusted proxies or of the connection itself.
  private func address(of exchange: HTTPExchange) -> String {
    guard isProxied(exchange) else { return exchange.peer }
    return ForwardedClient.address(
      in: exchange.request,
      behind: exchange.peer,
      isTrusted: trusted.contains
    )
  }

  /// The endpoint of a request.
  ///
  /// - Throws: Why the request is refused.
  mutating func admit(_ exchange: HTTPExchange) throws(Problem) -> Endpoint {
    let request = exchange.request
    let found: Result<Endpoint, Problem>
    do throws(Problem) {
      found = .success(try Router.endpoint(request.method, request.target.path))
    } catch {
      found = .failure(error)
    }
    let client = client(of: exchange)
    if client != nil || !exchange.isTrusted {
      if client == nil { try checkHost(request, from: exchange.peer) }
      // The page's own files are no secret, and a browser sends an origin for modules.
      var isFile = false
      if case .success(.panel) = found { isFile = true }
      if !isFile, let mistake = OriginRule.mistake(in: request, from: client) {
        throw refusal(403, "wrong_origin", mistake, from: address(of: exchange))
      }
    }
    if needsToken(exchange), (try? found.get())?.isOpen != true { try checkToken(exchange) }
    let endpoint = try found.get()
    try Self.checkBody(request, endpoint)
    return endpoint
  }

  /// Counts and logs a client that was turned away before it sent a request.
  mutating func connectionRefused(reason: String, at now: Moment) {
    record(reason, peer: "", at: now)
  }

  /// Counts and logs a refusal; the line contains no part of the request.
  private mutating func record(_ reason: String, peer: String, at now: Moment) {
    guard let count = tallies[reason, default: RejectionTally()].record(at: now) else { return }
    let total = tallies[reason]?.total ?? count
    log.warning(
      "HTTP request refused",
      ["reason": reason, "peer": peer, "count": String(count), "total": String(total)]
    )
  }

  /// The names of this gateway: its addresses, the configured ones, and this machine's.
  private static func names(_ configuration: HTTPConfiguration) -> [String] {
    let own = HostName.current
    return configuration.hosts + [own, "\(own).local"]
      + configuration.addresses.compactMap { address in
        if case .tcp(let host, _) = address { host } else { nil }
      }
  }

  private mutating func checkHost(_ request: HTTPRequest, from peer: String) throws(Problem) {
    guard let host = request.target.authority ?? request.value(of: "Host") else {
      throw Problem(400, "bad_request", "the Host header is missing")
    }
    guard hosts.accepts(host) else {
      throw refusal(
        421,
        "wrong_host",
        "'\(Excerpt.of(host))' is not this gateway; use its address, a name in http.listen or "
          + "one in http.hosts",
        from: peer
      )
    }
  }

  private mutating func checkToken(_ exchange: HTTPExchange) throws(Problem) {
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
        "the token is wrong, as too many were that came from this address",
        from: exchange.peer
      )
      problem.headers = [HTTPHeader("Retry-After", String(max(1, Int(wait / .seconds(1)))))]
      throw problem
    }
  }

  private static func checkBody(_ request: HTTPRequest, _ endpoint: Endpoint) throws(Problem) {
    let allowed = endpoint.mediaTypes(request.method)
    guard request.hasBody || request.mediaType != nil else { return }
    if allowed.isEmpty {
      guard !request.hasBody else {
        throw Problem(400, "bad_request", "'\(request.method)' requests have no body here")
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

  /// A refusal that an operator should know of.
  private mutating func refusal(
    _ status: Int,
    _ code: String,
    _ detail: String,
    from peer: String
  ) -> Problem {
    record(code, peer: peer, at: EventLoop.now())
    return Problem(status, code, detail)
  }
}

/// Translates rejections and errors into problems of HTTP.
enum HTTPProblems {
  /// Why a change was rejected.
  static func problem(_ error: ValidationError, key: String?) -> Problem {
    var members: [JSONValue.Member] = key.map { [.init("key", .string($0))] } ?? []
    let status: Int
    let code: ErrorCode
    switch error {
    case .inProperty(let property, let inner):
      var problem = problem(inner, key: key.map { "\($0)/\(property)" })
      problem.detail = error.description
      return problem
    case .unknownDevice(_, let suggestion), .unknownProperty(_, _, let suggestion, _),
      .unknownScene(_, let suggestion), .unknownName(_, let suggestion):
      (status, code) = (404, .unknownKey)
      if let suggestion { members.append(.init("suggestion", .string(suggestion))) }
    case .invalidKey(_, let suggestion):
      (status, code) = (404, .badKey)
      if let suggestion { members.append(.init("suggestion", .string(suggestion))) }
    case .wrongType(let found, let expected, let suggestion):
      (status, code) = (422, .badType)
      members.append(.init("found", .string(found)))
      members.append(.init("allowed", .string(expected)))
      if let suggestion { members.append(.init("suggestion", .string(suggestion))) }
    case .outOfRange(let found, let allowed):
      (status, code) = (422, .badValue)
      members.append(.init("found", .string(found)))
      members.append(.init("allowed", .string(allowed)))
    case .notAChoice(let found, let allowed, let suggestion):
      (status, code) = (422, .badValue)
      members.append(.init("found", .string(found)))
      members.append(.init("allowed", .array(allowed.map { .string($0) })))
      if let suggestion { members.append(.init("suggestion", .string(suggestion))) }
    case .unsupported: (status, code) = (422, .unsupported)
    case .noBase:
      return Problem(409, "no_base", error.description, members: members)
    case .held(let source):
      members.append(.init("held_by", .string(source)))
      return Problem(409, "held", error.description, members: members)
    case .notDurable:
      return Problem(
        503,
        "not_durable",
        error.description,
        members: members,
        headers: [HTTPHeader("Retry-After", "5")]
      )
    case .tooManyPending, .tooManyActions, .noRoomForAll: (status, code) = (429, .limit)
    case .shuttingDown: (status, code) = (503, .stopping)
    }
    let retry = status == 429 || status == 503 ? [HTTPHeader("Retry-After", "5")] : []
    return Problem(status, code.rawValue, error.description, members: members, headers: retry)
  }

  /// Why a request was not understood.
  static func problem(_ error: GrammarError) -> Problem {
    problem(code: error.code, message: error.message)
  }

  static func problem(_ failure: ErrorReply) -> Problem {
    problem(code: failure.code, message: failure.message)
  }

  /// A mistake that the control socket has a code for.
  static func problem(_ code: ErrorCode, _ message: String) -> Problem {
    problem(code: code.rawValue, message: message)
  }

  private static func problem(code: String, message: String) -> Problem {
    let status =
      switch ErrorCode(rawValue: code) {
      case .syntax, .incompleteLine: 400
      case .unknownKey: 404
      case .lineTooLong: 413
      case .limit: 429
      case .stopping, .noOwner: 503
      case .unanswered: 504
      case .badConfiguration: 409
      case .badKey, .unknownMember, .misplacedMember, .missingOperation, .severalOperations,
        .missingKey,
        .badType, .badValue, .cannotConfirm, .unsupported, nil:
        422
      }
    return Problem(status, code, message)
  }

  /// Why a change ended without the phase that the client waits for.
  static func problem(_ event: EventObject, rejection: ValidationError?) -> Problem {
    if event.phase == .rejected, let rejection { return problem(rejection, key: event.key) }
    let status =
      switch event.phase {
      case .failed: 502
      case .expired: 504
      case .superseded, .cancelled, .rejected, .accepted, .unchanged, .sending, .sent,
        .confirmed:
        409
      }
    let reason = event.reason.map { ": \($0)" } ?? ""
    return Problem(
      status,
      event.phase.rawValue,
      "the change of \(event.key) was \(word(event.phase))\(reason)",
      members: [.init("event", event.json)]
    )
  }

  private static func word(_ phase: Phase) -> String {
    switch phase {
    case .failed: "sent and failed"
    case .expired: "not sent in time"
    case .accepted, .superseded, .unchanged, .cancelled, .rejected, .sending, .sent, .confirmed:
      phase.rawValue
    }
  }
}
