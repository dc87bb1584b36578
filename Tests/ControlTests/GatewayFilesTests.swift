// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Glibc
import Testing

/// Which files of a running gateway another program uses.
struct GatewayFilesTests {
  private static let owners: [String: UInt32] = [
    "/etc/settle.yaml": 0, "/etc/devices": 0, "/srv/settle.yaml": 990, "/srv/devices": 990,
    "/home/devices": 1000,
  ]

  @Test(
    arguments: [
      (0, 0, "/srv/settle.yaml", "/home/devices", nil),
      (1000, 990, "/etc/settle.yaml", "/home/devices", nil),
      (0, 990, "/etc/settle.yaml", "/etc/devices", nil),
      (0, 990, "/srv/settle.yaml", "/srv/devices", nil),
      (0, 990, nil, "/srv/devices", nil),
      (0, 990, "/srv/settle.yaml", "/home/devices", "/home/devices"),
      (0, 1000, "/srv/settle.yaml", "/home/devices", "/srv/settle.yaml"),
      (0, 990, "/nowhere", "/srv/devices", "/nowhere"),
      (0, nil, "/etc/settle.yaml", "/srv/devices", "/srv/devices"),
    ] as [(UInt32, UInt32?, String?, String, String?)]
  )
  func `root uses only files that belong to it or to the user of the gateway`(
    user: UInt32,
    peer: UInt32?,
    settings: String?,
    devices: String,
    strange: String?
  ) {
    let files = GatewayFiles(settings: settings, devices: devices)
    let found = files.strange(to: user, saidBy: peer) { Self.owners[$0] }
    #expect(found == strange)
  }

  @Test func `a folder that must be made belongs to the owner of the one above`() throws {
    let folder = try makeFolder()
    defer { unsafe rmdir(folder) }
    #expect(GatewayFiles.owner(of: folder) == geteuid())
    #expect(GatewayFiles.owner(of: "\(folder)/home/devices") == geteuid())
    #expect(GatewayFiles.owner(of: "/none/devices") == 0)
  }

  @Test func `the user who runs a gateway is that of its socket`() throws {
    let gateway = try FakeGateway { _ in [] }
    let client = try ControlClient(path: gateway.path)
    let peer = client.peer
    #expect(peer == geteuid())
  }
}
