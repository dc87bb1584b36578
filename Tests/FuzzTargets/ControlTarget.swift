// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
@testable import Gateway

/// The stream of one client of the control socket; it arrives in the parts of the input.
enum ControlTarget {
  static let run: @Sendable ([UInt8]) -> Void = { bytes in
    FuzzGateway.with { host in
      let requester = DeafRequester()
      var framer = LineFramer(limit: 4096)
      for part in Parts.of(bytes) {
        framer.append(part.span)
        while let output = framer.next() {
          guard case .line(let line, let number) = output else { continue }
          perform(Array(line), number, for: requester, at: host)
        }
      }
      _ = framer.finish()
    }
  }

  private static func perform(
    _ line: [UInt8],
    _ number: Int,
    for requester: DeafRequester,
    at host: GatewayHost
  ) {
    do throws(GrammarError) {
      let request = try ControlRequest(line: line.span)
      switch request.operation {
      case .reload, .status, .watch, .record: return  // Those need a file, or a socket.
      case .set, .step, .toggle, .scene, .get, .pending, .describe, .log, .devices, .flush,
        .cancel:
        host.requests.perform(request, for: requester, line: number)
      }
    } catch {
      requester.send(.failure(ErrorReply(error, line: number), id: error.replyID))
    }
  }
}

/// A requester that encodes the replies and drops them.
private final class DeafRequester: Requester {
  let number: UInt64 = 1

  func send(_ reply: ControlReply) {
    precondition(!reply.line.contains(0x0A), "A reply is one line.")
  }
}
