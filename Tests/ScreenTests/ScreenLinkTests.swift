// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import LastOut
import Testing

@testable import Screen

@Suite struct ScreenLinkTests {
  private func at(_ milliseconds: UInt64) -> Moment {
    Moment(nanoseconds: milliseconds * 1_000_000)
  }

  /// A link whose first requests are answered at time zero.
  private func ready() -> ScreenLink {
    var link = ScreenLink(name: "me")
    link.connected(at: at(0))
    link.described(at: at(0))
    link.endRead()
    link.endRead()
    _ = link.dequeueRequests()
    return link
  }

  @Test func `values are read every second, unless a read is without an answer`() {
    var link = ready()
    #expect(!due(&link, 999))
    #expect(due(&link, 1000))
    link.request(.get, "*", RequestID.get, at: at(1000))
    #expect(!due(&link, 2000))
    link.endRead()
    #expect(due(&link, 3000))
  }

  @Test func `an event brings the next read forward, never back`() {
    var link = ready()
    link.refreshSoon(at: at(100))
    #expect(link.nextTick(after: at(100)) == at(150))
    link.refreshSoon(at: at(140))
    #expect(link.nextTick(after: at(140)) == at(150))
  }

  @Test func `a gateway without an answer for three seconds is silent until it answers`() {
    var link = ready()
    link.request(.get, "*", RequestID.get, at: at(100))
    _ = due(&link, 3099)
    #expect(!link.isSilent)
    _ = due(&link, 3100)
    #expect(link.isSilent)
    link.answered()
    #expect(!link.isSilent)
  }

  @Test func `a change is answered once, and by its own identifier`() {
    var link = ready()
    link.requestChange(.toggle, of: "a/x")
    link.requestChange(.toggle, of: "a/y")
    let answers = ["me-2", "me-2", "other-1", "me-1"].map { link.endChange($0) }
    #expect(answers == ["a/y", nil, nil, "a/x"])
    #expect(link.isOwn("me-7") && !link.isOwn("men-7"))
  }

  @Test func `the devices are requested once, until they are described`() {
    var link = ready()
    for _ in 0..<3 { link.requestDescription(at: at(1)) }
    #expect(link.dequeueRequests().count == 1)
    link.described(at: at(2))
    link.requestDescription(at: at(3))
    #expect(link.dequeueRequests().count == 1)
  }

  private func due(_ link: inout ScreenLink, _ milliseconds: UInt64) -> Bool {
    link.advance(to: at(milliseconds))
  }
}
