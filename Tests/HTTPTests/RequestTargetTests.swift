// Settle
// SPDX-License-Identifier: Apache-2.0

import HTTP
import Testing

@Suite struct RequestTargetTests {
  @Test func `segments and parameters are decoded each by itself`() throws {
    let target = try RequestTarget("/v1/a%2Fb/%C3%A4?key=desk-lamp%2F*&now&x=a+b%2B=c")

    #expect(target.path == ["v1", "a/b", "ä"])
    #expect(target.query.map(\.name) == ["key", "now", "x"])
    #expect(target.query.map(\.value) == ["desk-lamp/*", "", "a b+=c"])
    #expect(target.authority == nil)
  }

  @Test(arguments: [
    ("", "must start with"), ("*", "must start with"), ("v1", "must start with"),
    ("/%", "hexadecimal"),
    ("/%4", "hexadecimal"), ("/%zz", "hexadecimal"), ("/%00", "control character"),
    ("/a?x=%0d%0aSet-Cookie", "control character"), ("/%ff", "UTF-8"), ("/a?%c3=1", "UTF-8"),
  ])
  func `an invalid target is refused with the reason`(text: String, reason: String) throws {
    let mistake = try #require(throws: RequestTarget.Mistake.self) { try RequestTarget(text) }

    #expect(mistake.message.contains(reason))
  }

  @Test func `an absolute target brings its host along`() throws {
    #expect(try RequestTarget("HTTP://Evil.example:80/x").authority == "Evil.example:80")
    #expect(try RequestTarget("http://localhost").path == [""])
    #expect(try RequestTarget("http://localhost?key=a").query.map(\.value) == ["a"])
  }
}
