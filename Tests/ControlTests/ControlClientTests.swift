// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Glibc
import JSON
import Operations
import Testing
import Values

struct ControlClientTests {
  private func event(_ phase: Phase, id: String) -> EventObject {
    EventObject(id: id, key: "a/b", phase: phase, value: 1, at: "2026-11-21T08:00:00.123Z")
  }

  @Test func `replies have the id of their requests`() throws {
    let gateway = try FakeGateway { line in
      guard let request = try? ControlRequest(line: line.utf8.span) else { return nil }
      let event = EventObject(
        id: request.id ?? "new",
        key: request.key,
        phase: .accepted,
        value: 1,
        at: "2026-11-21T08:00:00.123Z"
      )
      return [String(decoding: ControlReply.event(event, id: request.replyID).line, as: UTF8.self)]
    }
    var client = try ControlClient(path: gateway.path)
    for id in ["one", "two", "three"] {
      var request = ControlRequest(.set(1), key: "a/b")
      request.id = id
      try client.send(request)
    }
    for id in ["one", "two", "three"] {
      let reply = try client.next(by: Deadline(after: .seconds(60)))
      #expect(reply == .event(event(.accepted, id: id), id: .string(id)))
    }
  }

  @Test func `a gateway that does not reply times out`() throws {
    let gateway = try FakeGateway { _ in [] }
    var client = try ControlClient(path: gateway.path)
    try client.send(ControlRequest(.get, key: "*"))
    #expect(throws: ClientError.timedOut(after: .milliseconds(20))) {
      try client.next(by: Deadline(after: .milliseconds(20)))
    }
  }

  @Test func `a closed connection is reported`() throws {
    let gateway = try FakeGateway { _ in nil }
    var client = try ControlClient(path: gateway.path)
    try client.send(ControlRequest(.get, key: "*"))
    #expect(throws: ClientError.closed) { try client.next(by: Deadline(after: .seconds(60))) }
  }

  @Test func `a line that is not a reply is reported`() throws {
    let gateway = try FakeGateway { _ in ["hello"] }
    var client = try ControlClient(path: gateway.path)
    try client.send(ControlRequest(.get, key: "*"))
    #expect(throws: ClientError.unreadable("hello")) {
      try client.next(by: Deadline(after: .seconds(60)))
    }
  }

  @Test func `a reply of a megabyte arrives complete`() throws {
    let rows = (0..<10_000).map {
      TargetRow(
        key: "device-\($0)/brightness",
        target: .integer(Int64($0)),
        actual: nil,
        phase: nil,
        ageMilliseconds: nil
      )
    }
    let line = String(decoding: ControlReply.targets(rows, id: nil).line, as: UTF8.self)
    let (client, server) = try pair()
    let thread = try WorkerThread { sendAll(line + "\n", to: server) }
    var connection = ControlClient(connected: client)
    let reply = try connection.next(by: Deadline(after: .seconds(60)))
    thread.join()
    #expect(reply == .targets(rows, id: nil))
  }

  @Test func `without a gateway the error says how to start one`() throws {
    let folder = try makeFolder()
    defer { unsafe rmdir(folder) }
    let path = "\(folder)/settle.sock"
    let missing = #expect(throws: ClientError.notRunning(path: path)) {
      _ = try ControlClient(path: path)
    }
    #expect(missing?.description.contains("settle run") == true)
    close(try listen(at: path))  // The file stays behind, as after a crash.
    defer { unsafe unlink(path) }
    #expect(throws: ClientError.notRunning(path: path)) { _ = try ControlClient(path: path) }
  }

  @Test(arguments: [(UInt32(0), "root"), (1001, "settle"), (7, nil), (12, nil)])
  func `the group that owns a socket is found by its number`(number: UInt32, name: String?) {
    let groups = "root:x:0:\nbroken\nsettle:x:1001:me,you\n:x\nodd:x:12a:\n"
    #expect(SocketOwner.name(ofGroup: number, in: groups) == name)
  }

  @Test func `a permission error names the socket's group`() {
    let error = ClientError.denied(path: "/run/settle/settle.sock", group: "settle")
    #expect(
      error.description == "permission denied at /run/settle/settle.sock;"
        + " members of the group \"settle\" may use it"
    )
  }

  @Test func `a path that is too long for the kernel is refused`() {
    let path = "/" + String(repeating: "x", count: 107)
    #expect(throws: ClientError.pathTooLong(path)) { _ = try ControlClient(path: path) }
  }

  @Test func `the socket named beats SETTLE_SOCKET beats the usual places`() throws {
    let folder = try makeFolder()
    let user = "\(folder)/settle.sock"
    close(try listen(at: user))
    defer {
      unsafe unlink(user)
      unsafe rmdir(folder)
    }
    func find(_ named: String?, _ environment: [String: String]) throws -> String {
      try SocketPath.find(named: named, environment: { environment[$0] })
    }
    #expect(try find("/a", ["SETTLE_SOCKET": "/b", "XDG_RUNTIME_DIR": folder]) == "/a")
    #expect(try find(nil, ["SETTLE_SOCKET": "/b", "XDG_RUNTIME_DIR": folder]) == "/b")
    #expect(try find(nil, ["SETTLE_SOCKET": "", "XDG_RUNTIME_DIR": folder]) == user)
  }

  private func pair() throws -> (Int32, Int32) {
    var descriptors: [Int32] = [0, 0]
    guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &descriptors) == 0 else {
      throw SystemCallFailed(call: "socketpair")
    }
    return (descriptors[0], descriptors[1])
  }
}

private func sendAll(_ text: String, to descriptor: Int32) {
  var rest = Array(text.utf8)[...]
  while !rest.isEmpty {
    let count = unsafe rest.withUnsafeBytes { buffer in
      unsafe send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
    }
    guard count > 0 else { break }
    rest = rest.dropFirst(count)
  }
  close(descriptor)
}
