// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import TestBroker
import Testing

@Suite(.blocking) struct ProcessTests {
  @Test(arguments: [
    (["sh", "-c", "exit 3"], SpawnedProcess.Ending.exited(code: 3)),
    (["sh", "-c", "kill -TERM $$"], .signalled(number: SIGTERM)),
    (["true"], .exited(code: 0)),
  ])
  func `the way a child ends is reported`(
    arguments: [String],
    ending: SpawnedProcess.Ending
  ) throws {
    let process = try SpawnedProcess(arguments: arguments)
    #expect(process.wait() == ending)
    #expect(process.ending == ending)
  }

  @Test func `output, input and environment are connected as requested`() throws {
    let input = try Pipe()
    let output = try Pipe()
    let process = try SpawnedProcess(
      arguments: ["sh", "-c", "read line; echo \"$line $WORD\"; ls /proc/self/fd | wc -l"],
      environment: ["PATH": "/usr/bin:/bin", "WORD": "b"],
      input: input.reader,
      output: .descriptor(output.writer)
    )
    input.put("a\n")
    #expect(process.wait() == .exited(code: 0))
    var bytes = [UInt8](repeating: 0, count: 100)
    let count = unsafe read(output.reader, &bytes, bytes.count)
    // Three descriptors and the one that lists them: nothing of this process leaks into a child.
    #expect(String(decoding: bytes[..<max(0, count)], as: UTF8.self) == "a b\n4\n")
  }

  @Test func `a program that does not exist is an error that names it`() {
    #expect(throws: OperationsError(call: "posix_spawn no-such-program", code: ENOENT)) {
      _ = try SpawnedProcess(arguments: ["no-such-program"])
    }
  }

  @Test func `a signal reaches the child, and none is sent after its end`() throws {
    let process = try SpawnedProcess(arguments: ["sleep", "60"])
    process.signal(SIGKILL)
    #expect(process.wait() == .signalled(number: SIGKILL))
    process.signal(SIGKILL)
    #expect(process.wait(milliseconds: 0) == .signalled(number: SIGKILL))
  }

  @Test func `the service manager is notified by one datagram`() throws {
    let path = "/tmp/settle-notify-\(getpid()).sock"
    let server = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    defer {
      close(server)
      unsafe unlink(path)
    }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) {
      unsafe $0.copyBytes(from: Array(path.utf8))
    }
    let bound = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(server, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    #expect(bound == 0)
    #expect(Notify.send("READY=1", to: path))
    var bytes = [UInt8](repeating: 0, count: 100)
    let count = unsafe read(server, &bytes, bytes.count)
    #expect(String(decoding: bytes[..<max(0, count)], as: UTF8.self) == "READY=1")
    #expect(!Notify.send("READY=1", to: "/nonexistent/socket"))
    #expect(!Notify.send("READY=1", to: "relative"))
  }
}
