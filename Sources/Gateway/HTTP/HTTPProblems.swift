// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import HTTP
import JSON
import Values

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
