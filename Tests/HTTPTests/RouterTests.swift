// Settle
// SPDX-License-Identifier: Apache-2.0

import HTTP
import Testing

@Suite struct RouterTests {
  @Test(arguments: [
    ("GET", "/v1/devices", Endpoint.devices),
    ("PUT", "/v1/devices/desk-lamp/brightness", .property("desk-lamp/brightness")),
  ])
  func `a path and a method name an endpoint`(
    method: String,
    path: String,
    expected: Endpoint
  ) throws {
    #expect(try Router.endpoint(method, RequestTarget(path).path) == expected)
  }
}
