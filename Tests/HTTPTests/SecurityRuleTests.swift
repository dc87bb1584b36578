// Settle
// SPDX-License-Identifier: Apache-2.0

import HTTP
import LastOut
import Testing

@Suite struct SecurityRuleTests {
  @Test(arguments: [
    ("localhost", true), ("LOCALHOST:8484", true), ("panel.localhost:1", true),
    ("127.0.0.1:8484", true), ("192.168.1.5", true), ("[::1]:8484", true), ("[fe80::1]", true),
    ("pi:8484", true), ("PI.local", true), ("pi.", true),
    ("evil.example", false), ("localhost.evil.example", false), ("127.0.0.1.evil.example", false),
    ("1.2.3", false), ("1.2.3.4.5", false), ("256.1.1.1", false), ("", false), (":80", false),
    ("localhost:http", false), ("localhost:123456", false), ("[::1", false),
    ("[::1]evil.example", false), ("[evil.example]", false), ("user@localhost", false),
    ("localhost/x", false),
  ])
  func `only our own names and addresses are hosts`(authority: String, isOurs: Bool) {
    #expect(HostRule(names: ["pi", "pi.local"]).accepts(authority) == isOurs)
  }

  @Test(arguments: [
    (nil, nil, true), ("http://localhost:8484", nil, true), ("HTTP://LOCALHOST:8484", nil, true),
    ("http://localhost:8484", "same-origin", true), (nil, "none", true),
    ("http://localhost:3000", nil, false), ("http://localhost", nil, false),
    ("http://evil.example", nil, false), ("null", nil, false), ("", nil, false),
    ("file://", nil, false), (nil, "cross-site", false), (nil, "same-site", false),
  ])
  func `a change from another page is refused`(
    origin: String?,
    site: String?,
    isTaken: Bool
  ) throws {
    #expect((OriginRule.mistake(in: try request("POST", origin, site)) == nil) == isTaken)
  }

  @Test func `a link may lead here, but another page may not read`() throws {
    #expect(OriginRule.mistake(in: try request("GET", nil, "cross-site")) == nil)
    #expect(OriginRule.mistake(in: try request("GET", "http://evil.example", nil)) != nil)
  }

  @Test func `the standard port may be omitted in an origin`() throws {
    var request = HTTPRequest(method: "POST", target: try RequestTarget("/"))
    request.headers = [HTTPHeader("host", "pi"), HTTPHeader("origin", "http://pi:80")]
    #expect(OriginRule.mistake(in: request) == nil)
  }

  private func request(_ method: String, _ origin: String?, _ site: String?) throws -> HTTPRequest {
    var request = HTTPRequest(method: method, target: try RequestTarget("/v1/flush"))
    request.headers = [HTTPHeader("Host", "localhost:8484")]
    if let origin { request.headers.append(HTTPHeader("Origin", origin)) }
    if let site { request.headers.append(HTTPHeader("Sec-Fetch-Site", site)) }
    return request
  }

  @Test(arguments: [
    (["Bearer right"], TokenGuard.Verdict.welcome), (["bearer  right"], .welcome),
    (["Bearer wrong"], .wrong), (["Bearer righ"], .wrong), (["Bearer rightright"], .wrong),
    (["Bearer ri ght"], .wrong), (["Bearer right \t"], .welcome),
    (["Bearer RIGHT"], .wrong), ([], .missing), (["right"], .missing), (["Basic right"], .missing),
    (["Bearer"], .missing), (["Bearer right", "Bearer right"], .missing),
  ])
  func `only the token itself opens`(headers: [String], verdict: TokenGuard.Verdict) {
    var tokens = TokenGuard(token: "right")
    #expect(tokens.judge(headers, from: "::1", at: .zero) == verdict)
  }

  @Test func `a client that guesses is slowed down, and no other at the same address`() {
    var tokens = TokenGuard(token: "right")
    for _ in 0..<10 {
      #expect(tokens.judge(["Bearer wrong"], from: "10.0.0.1", at: .zero) == .wrong)
    }

    let blocked = TokenGuard.Verdict.tooMany(retryAfter: .seconds(1))
    #expect(tokens.judge(["Bearer wrong"], from: "10.0.0.1", at: .zero) == blocked)
    #expect(tokens.judge(["Bearer right"], from: "10.0.0.1", at: .zero) == .welcome)
    #expect(tokens.judge(["Bearer wrong"], from: "10.0.0.1", at: .zero) == blocked)
    #expect(tokens.judge([], from: "10.0.0.1", at: .zero) == .missing)
    #expect(tokens.judge(["Bearer right"], from: "10.0.0.2", at: .zero) == .welcome)
    let later = Moment.zero.advanced(by: .seconds(2))
    #expect(tokens.judge(["Bearer wrong"], from: "10.0.0.1", at: later) == .wrong)
  }

  @Test func `guesses from many addresses do not make it grow without bound`() {
    var tokens = TokenGuard(token: "right")
    for number in 0..<5000 {
      #expect(tokens.judge(["Bearer x"], from: String(number), at: .zero) == .wrong)
    }
    #expect(tokens.rememberedAddresses <= 1024)
  }
}
