// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
@testable import Gateway
@testable import HTTP

/// A request: its method and target, a line feed and the body.
enum HTTPTarget {
  static let run: @Sendable ([UInt8]) -> Void = { bytes in
    let (head, body) = Parts.head(bytes)
    let words = String(decoding: head, as: UTF8.self).split(separator: " ", maxSplits: 1)
    guard words.count == 2 else { return }
    let target: RequestTarget
    do throws(RequestTarget.Mistake) {
      target = try RequestTarget(String(words[1]))
    } catch {
      return
    }
    if let authority = target.authority { _ = HostRule(names: ["gateway"]).accepts(authority) }
    var request = HTTPRequest(method: String(words[0]), target: target)
    request.body = body
    _ = try? Router.endpoint(request.method, target.path)
    for operation in ["set", "step", "toggle"] {
      _ = try? ChangeBody.request(operation, key: target.path.last ?? "", from: request)
    }
    _ = try? ChangeBody.pattern(of: request, beside: ["now"])
    _ = try? ChangeBody.flag("now", of: request)
  }
}
