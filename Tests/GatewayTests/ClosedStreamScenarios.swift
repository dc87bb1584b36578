// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Programs that are started without some of the standard streams.
@Suite(.blocking) struct ClosedStreamScenarios {
  /// Starts a program through a shell that closes streams first.
  private func start(_ arguments: [String], closing streams: String) throws -> SpawnedProcess {
    try SpawnedProcess(
      arguments: ["/bin/sh", "-c", "exec \"$@\" \(streams)", "sh"] + arguments,
      output: .discarded,
      errors: .discarded
    )
  }

  private func end(_ process: SpawnedProcess) -> SpawnedProcess.Ending? {
    let ending = process.wait()
    if ending == nil { process.signal(SIGKILL) }
    return ending
  }

  @Test(arguments: ["<&-", "<&- >&-", "<&- >&- 2>&-"])
  func `a pipe without standard input is at its end`(streams: String) throws {
    let bench = try Bench(devices: DeviceText.levels(1, policy: "{delay: 20ms}"))
    try bench.launchGateway()
    let process = try start(
      [BuiltProgram.path("settle"), "pipe", "--socket", bench.socketPath],
      closing: streams
    )
    #expect(end(process) == .exited(code: 0))
  }

  @Test func `what a command prints does not go to the gateway where standard output is closed`()
    throws
  {
    let bench = try Bench(devices: DeviceText.levels(1, policy: "{delay: 20ms}"))
    let listener = try LineListener(path: bench.socketPath)
    let process = try start(
      [BuiltProgram.path("settle"), "set", "dev0/level", "4", "--json", "--socket", listener.path],
      closing: ">&-"
    )
    let event =
      #"{"id":"a","key":"dev0/level","phase":"accepted","value":4,"collapsed":0,"source":"cli","#
      + #""at":"2026-11-21T08:00:00.123Z","attempt":1,"reason":null}"#
    let received = try listener.receiveAll(answering: event)
    #expect(end(process) == .exited(code: 0))
    #expect(received == #"{"key":"dev0/level","set":4,"source":"cli"}"# + "\n")
  }

  @Test func `a gateway without any standard stream ends well and says offline`() throws {
    let bench = try Bench(devices: DeviceText.levels(1, policy: "{delay: 20ms}"))
    try bench.broker.start()
    let witness = try bench.witness()
    let process = try start(
      [BuiltProgram.path("settled"), "run", "--config", bench.folder + "/settle.yaml"],
      closing: "<&- >&- 2>&-"
    )
    #expect(witness.waitFor("settle/status", "online"))
    process.signal(SIGTERM)
    #expect(end(process) == .exited(code: 0))
    #expect(witness.waitFor("settle/status", "offline"))
  }
}

/// A socket that takes one client.
private final class LineListener {
  let path: String
  private let listener: Int32

  init(path: String) throws {
    self.path = path
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let bound = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(listener, $0, size)
      }
    }
    try #require(bound == 0 && listen(listener, 1) == 0)
  }

  deinit { close(listener) }

  /// Answers the first bytes of the client with a line, and returns all that it sends.
  func receiveAll(answering line: String) throws -> String {
    let connection = accept(listener, nil, nil)
    try #require(connection >= 0)
    defer { close(connection) }
    var received: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = unsafe recv(connection, &chunk, chunk.count, 0)
      guard count > 0 else { return String(decoding: received, as: UTF8.self) }
      if received.isEmpty {
        let answer = Array((line + "\n").utf8)
        unsafe send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
      }
      received += chunk[..<count]
    }
  }
}
