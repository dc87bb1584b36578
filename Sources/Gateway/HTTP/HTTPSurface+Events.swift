// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import Devices
import HTTP
import LastOut
import Operations
import Values

/// Requests for event streams, and the room that they leave for others.
extension HTTPSurface {
  /// How many connections may be streams, so that changes still get in; and how many may be streams or
  /// waiting changes, so that quick requests still do.
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
      throw Problem(422, ErrorCode.badKey.rawValue, mistake)
    }
    do throws(ValidationError) {
      return try gateway.requests.watchPattern(text)
    } catch {
      throw HTTPProblems.problem(gateway.requests.suggesting(error, at: EventLoop.now()), key: text)
    }
  }
}
