// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Testing

@Suite struct HTTPSettingsTests {
  private static let good = "0123456789abcdef0123456789abcdef"

  private func load(
    _ http: String,
    token: String? = nil,
    mode: Int = 0o600,
    environment: [String: String] = [:]
  ) throws -> (gateway: GatewayConfiguration?, lines: [String]) {
    let folder = try TemporaryFolder()
    try folder.write(Array("http: {\(http)}\ndevices: ../devices".utf8), to: "c/settle.yaml")
    try folder.write(Array(Loading.lamp.utf8), to: "devices/d.yaml")
    if let token { try folder.write(Array(token.utf8), to: "c/token", mode: mode) }
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = folder.path + "/c/settle.yaml"
    switch Loading.load(overrides, environment: environment) {
    case .loaded(let loaded):
      return (loaded.gateway, Loading.lines(loaded.warnings, in: folder))
    case .refused(let problems): return (nil, Loading.lines(problems, in: folder))
    }
  }

  @Test func `addresses, token and names are read`() throws {
    let http = try #require(
      try load(
        #"listen: ["0.0.0.0:8484", "[::1]:0", "unix:/run/h"], token_file: token, hosts: [panel.lan]"#,
        token: Self.good + "\n"
      ).gateway?.http
    )

    #expect(
      http.addresses == [
        .tcp(host: "0.0.0.0", port: 8484), .tcp(host: "::1", port: 0), .unix(path: "/run/h"),
      ]
    )
    #expect(http.token == Self.good)
    #expect(http.hosts == ["panel.lan"])
  }

  @Test func `the variable overrides the file and works without one`() throws {
    let environment = ["SETTLE_HTTP_TOKEN": Self.good]
    let first = try load("listen: 1.2.3.4:5, token_file: gone", environment: environment)
    let second = try load("listen: 1.2.3.4:5", environment: environment)

    #expect(first.gateway?.http?.token == Self.good)
    #expect(second.gateway?.http?.token == Self.good)
  }

  @Test(arguments: [
    ("listen: 192.168.1.2:80", nil, "settle.yaml:1:16: listen: '192.168.1.2' is beyond"),
    ("listen: [localhost:1, 0.0.0.0:2]", nil, "listen: '0.0.0.0' is beyond this machine"),
    ("listen: localhost:1, token_file: token", nil, "token' does not exist"),
    ("listen: localhost:1, token_file: token", "", "token' is empty"),
    (
      "listen: localhost:1, token_file: token", "two words",
      "must be printable ASCII without spaces"
    ),
    ("listen: localhost", nil, "the port is missing"),
    ("listen: localhost:65536", nil, "'65536' is no port; expected 0 to 65535"),
    ("token_file: token", good, "'listen' is missing"),
    ("listen: localhost:1, hosts: [http://x]", nil, "expected a host name without a port"),
    ("listen: localhost:1, host: x", nil, "did you mean 'hosts'"),
    ("listen: localhost:1, trusted: [proxy]", nil, "found 'proxy'"),
    ("listen: localhost:1, trusted: [10.0.0.0/33]", nil, "a network such as 10.1.0.0/16"),
    ("listen: localhost:1, trusted: ['10.0.0.0/+8']", nil, "a network such as 10.1.0.0/16"),
    ("listen: localhost:1, trusted: ['::/129']", nil, "a network such as 10.1.0.0/16"),
    ("listen: localhost:1, trusted: [10.0.0.0/8/8]", nil, "a network such as 10.1.0.0/16"),
    ("listen: localhost:1, trusted: ['']", nil, "a network such as 10.1.0.0/16"),
  ])
  func `a mistake is reported with its position`(
    settings: String,
    token: String?,
    message: String
  ) throws {
    let (gateway, lines) = try load(settings, token: token)

    #expect(gateway == nil)
    #expect(lines.contains { $0.contains(message) }, "\(lines)")
    #expect(lines.count == 1)
  }

  @Test(arguments: [
    (0o600, nil), (0o400, nil), (0o640, nil), (0o644, "644"), (0o620, "620"), (0o604, "604"),
  ])
  func `a token that others may read is refused`(mode: Int, found: String?) throws {
    let (gateway, lines) = try load(
      "listen: localhost:1, token_file: token",
      token: Self.good,
      mode: mode
    )

    #expect((gateway != nil) == (found == nil))
    #expect(
      lines
        == (found.map {
          [
            "settle.yaml:1:41: token_file: '/c/token' has mode \($0), which lets others read or "
              + "write it; allowed is 600, or 640 for a group (chmod 600 /c/token)"
          ]
        } ?? [])
    )
  }

  @Test(arguments: [
    ("192.168.1.2:1", 15, false), ("192.168.1.2:1", 16, true), ("panel.lan:1", 15, false),
    ("127.0.0.1:1", 15, true), ("unix:/run/h", 15, true), ("0.0.0.0:1", 15, false),
  ])
  func `a token for other machines has sixteen characters`(
    address: String,
    count: Int,
    isTaken: Bool
  ) throws {
    let token = String(repeating: "x", count: count)
    let file = try load("listen: [\"\(address)\"], token_file: token", token: token)
    let variable = try load(
      "listen: [\"\(address)\"]",
      environment: ["SETTLE_HTTP_TOKEN": token]
    )

    for (gateway, lines) in [file, variable] {
      #expect((gateway != nil) == isTaken)
      let message = "needs a token of at least 16 characters; this one has 15"
      #expect(lines.contains { $0.contains(message) } == !isTaken, "\(lines)")
      #expect(!lines.joined().contains(token))
    }
  }

  @Test func `a short token causes a warning`() throws {
    let (gateway, lines) = try load("listen: localhost:1, token_file: token", token: "secret")

    #expect(gateway?.http?.token == "secret")
    #expect(lines.contains { $0.contains("has 6 characters and can be guessed") }, "\(lines)")
    #expect(!lines.contains { $0.contains("secret") })
  }

  @Test(arguments: [
    ("172.30.32.2", true), ("172.30.32.3", false), ("10.1.255.255", true), ("10.2.0.0", false),
    ("::ffff:10.1.0.1", true), ("fd00::1", true), ("fd01::1", false), ("fd00::1%eth0", true),
    ("192.168.7.129", true), ("192.168.7.127", false), ("unix", true), ("", false), ("x", false),
  ])
  func `trusted proxies are addresses, networks and unix sockets`(
    peer: String,
    isTrusted: Bool
  ) throws {
    let http = try #require(
      try load(
        "listen: ['0.0.0.0:1'], trusted: [172.30.32.2, 10.1.0.0/16, 'fd00::/16', 192.168.7.128/25, unix]"
      ).gateway?.http
    )

    #expect(http.trustedPeers.contains(peer) == isTrusted)
    #expect(http.needsToken)
  }

  @Test func `nobody is trusted without being named`() throws {
    let local = try #require(try load("listen: localhost:1").gateway?.http)
    let proxied = try #require(try load("listen: localhost:1, trusted: 10.0.0.1").gateway?.http)

    for peer in ["unix", "127.0.0.1", "::1"] {
      #expect(!local.trustedPeers.contains(peer) && !proxied.trustedPeers.contains(peer))
    }
    #expect(!local.needsToken && !proxied.needsToken)
  }
}
