// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import JSON
import Testing

@testable import Gateway

/// When a change over HTTP has its last reply.
struct HTTPChangeTests {
  @Test(arguments: [(parts: 1, last: [true]), (parts: 2, last: [false, true])])
  func `a change that was passed on and then executed here is answered`(
    parts: Int,
    last: [Bool]
  ) throws {
    var isLast: [Bool] = []
    let change = HTTPChange(number: 1, wait: nil) { isLast.append($2) }
    change.owesReply()  // It is passed on.
    change.expect(parts: parts)
    for _ in 0..<parts { change.owesReply() }
    change.hasReplied()
    for part in 0..<parts {
      let json = try JSONParser.parse(
        #"{"id":"1","key":"lamp/\#(part)","phase":"accepted","value":1,"at":"2026-11-27T00:00:00Z"}"#
      )
      change.receive(try #require(EventObject(json)), id: nil, isFinal: false)
    }
    #expect(isLast == last)
  }
}
