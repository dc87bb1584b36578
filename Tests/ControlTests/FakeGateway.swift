// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Glibc
import Operations

/// A gateway double: listens on its own Unix socket and answers each line as the test requests.
final class FakeGateway: Sendable {
  let folder: String
  var path: String { "\(folder)/settle.sock" }
  private let listener: Int32

  /// Starts a thread that serves one connection.
  ///
  /// `answer` gets each request's line, and its lines go back; `nil` closes the connection.
  init(answer: @escaping @Sendable (String) -> [String]?) throws {
    folder = try makeFolder()
    listener = try listen(at: "\(folder)/settle.sock")
    // The thread has a descriptor of its own: one that starts late must not accept for another
    // listener that has the number by then.
    let own = fcntl(listener, F_DUPFD_CLOEXEC, 0)
    guard own >= 0 else { throw SystemCallFailed(call: "fcntl") }
    try WorkerThread {
      serve(own, answer: answer)
      close(own)
    }.detach()
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
    unsafe unlink(path)
    unsafe rmdir(folder)
  }
}

struct SystemCallFailed: Error { let call: String }

/// A new folder below `/tmp`, short enough for a socket's path.
func makeFolder() throws -> String {
  var template = Array("/tmp/settle-test-XXXXXX".utf8CString)
  guard unsafe mkdtemp(&template) != nil else { throw SystemCallFailed(call: "mkdtemp") }
  return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// A socket that listens at `path`.
func listen(at path: String) throws -> Int32 {
  let listener = socket(
    AF_UNIX,
    Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue),
    0
  )
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
  let size = socklen_t(MemoryLayout<sockaddr_un>.size)
  let bound = unsafe withUnsafePointer(to: &address) { pointer in
    unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      unsafe bind(listener, $0, size)
    }
  }
  guard bound == 0, Glibc.listen(listener, 8) == 0 else { throw SystemCallFailed(call: "listen") }
  return listener
}

private func serve(_ listener: Int32, answer: (String) -> [String]?) {
  let connection = accept(listener, nil, nil)
  guard connection >= 0 else { return }
  defer { close(connection) }
  var framer = LineFramer()
  var chunk = [UInt8](repeating: 0, count: 4096)
  while true {
    while case .line(let bytes, _) = framer.next() {
      guard let lines = answer(String(decoding: bytes, as: UTF8.self)) else { return }
      for byte in lines.flatMap({ Array("\($0)\n".utf8) }) {
        var byte = byte
        // Byte by byte: the client must not depend on how replies are cut.
        unsafe send(connection, &byte, 1, Int32(MSG_NOSIGNAL))
      }
    }
    let count = unsafe recv(connection, &chunk, chunk.count, 0)
    guard count > 0 else { return }
    framer.append(chunk.span.extracting(0..<count))
  }
}
