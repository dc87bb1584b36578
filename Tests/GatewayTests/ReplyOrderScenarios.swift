// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import TestBroker
import Testing

/// The order of replies to one client, although a change is answered after its command was sent.
@Suite(.blocking) struct ReplyOrderScenarios {
  private static let requests = #"""
    {"key":"dev0/level","set":1,"now":true,"id":"1"}
    {"key":
    {"key":"dev0/level","set":2,"now":true,"id":"2"}
    {"key":"nothing/level","set":2,"id":"3"}
    {"key":"dev1/level","set":3,"id":"4"}
    {"watch":"dev1/*","id":"w"}
    {"get":"dev1/level","id":"5"}
    {"key":"dev1/level","set":"much","id":"6"}
    {"key":"dev1/level","set":4,"id":"7"}

    """#

  @Test func `replies are in the order of the requests, whatever their kind`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(2, policy: "{delay: 60s}"))
    let client = try bench.client()

    client.send(bytes: Array(Self.requests.utf8))
    client.endInput()

    var ids: [JSONValue?] = []
    var watched: [JSONValue] = []
    while ids.last != "7" {
      let line = try client.next()
      if let event = line["event"] { watched.append(event) } else { ids.append(line["id"]) }
    }
    #expect(ids == ["1", .null, "2", "3", "4", "5", "6", "7"])
    // The watch began after it.
    #expect(!watched.contains { $0["id"] == "4" && $0["phase"] == "accepted" })
  }

  @Test func `the last change before a client's end is answered`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: "{delay: 60s}"))
    // As many bytes as are read at a time, so that the end is seen in the same turn.
    let change = #"{"key":"dev0/level","set":7,"now":true,"id":"last"}"# + "\n"
    let blank = String(repeating: " ", count: 16 * 1024 - change.utf8.count - 1) + "\n"
    let client = try bench.client()

    client.send(bytes: Array((blank + change).utf8))
    client.endInput()

    let reply = try client.next()
    #expect(reply["id"] == "last")
    #expect(reply["phase"] == "accepted")
    #expect(client.isClosed())
  }
}
