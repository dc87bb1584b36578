// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Testing

struct SocketPathTests {
  private static let places: [([String: String], UInt32, [String])] = [
    (
      [:], 1000, ["/run/user/1000/settle.sock", "/run/settle/settle.sock"]
    ),
    (
      ["XDG_RUNTIME_DIR": ""], 1000, ["/run/user/1000/settle.sock", "/run/settle/settle.sock"]
    ),
    (
      ["XDG_RUNTIME_DIR": "/run/user/1000"], 1000,
      ["/run/user/1000/settle.sock", "/run/settle/settle.sock"]
    ),
    (
      ["XDG_RUNTIME_DIR": "/tmp/x"], 1000,
      ["/tmp/x/settle.sock", "/run/user/1000/settle.sock", "/run/settle/settle.sock"]
    ),
  ]

  @Test(arguments: places)
  func `a client looks where the user's gateway is, with XDG_RUNTIME_DIR and without`(
    variables: [String: String],
    user: UInt32,
    paths: [String]
  ) {
    #expect(SocketPath.usual(environment: { variables[$0] }, user: user) == paths)
  }

  @Test func `without a gateway every place is named, and how to name another`() {
    #expect(
      throws: ClientError.noSocket(lookedAt: [
        "/run/user/4000000000/settle.sock", "/run/settle/settle.sock",
      ])
    ) {
      _ = try SocketPath.find(named: nil, environment: { _ in nil }, user: 4_000_000_000)
    }
    #expect(
      ClientError.noSocket(lookedAt: ["/a", "/b", "/c"]).description
        == #"no gateway is running: there is no /a, /b or /c; start it with "settle run"; if its"#
        + #" settings have "socket:", name that path with --socket or SETTLE_SOCKET"#
    )
  }

  @Test func `a gateway uses the system's folder where the user has none`() {
    let user: UInt32 = 4_000_000_000
    #expect(SocketPath.standard(environment: { _ in nil }, user: user) == SocketPath.system)
    #expect(SocketPath.standard(environment: { _ in nil }, user: 0) == SocketPath.system)
    let named = SocketPath.standard(environment: { $0 == "XDG_RUNTIME_DIR" ? "/x" : nil })
    #expect(named == "/x/settle.sock")
  }
}
