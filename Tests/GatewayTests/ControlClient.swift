// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker

/// A program that talks to the control socket directly.
///
/// Not thread safe.
final class ControlClient {
  private let descriptor: Int32
  private let reader: LineReader
  private var taken = 0

  init(_ path: String) throws {
    guard let descriptor = Self.connected(to: path) else {
      throw GatewayProcess.Failure(description: "no connection to \(path): \(errno)")
    }
    self.descriptor = descriptor
    reader = LineReader(descriptor)
  }

  static func accepts(_ path: String) -> Bool {
    guard let descriptor = connected(to: path) else { return false }
    close(descriptor)
    return true
  }

  /// Sends one line and returns the next line that comes back.
  func ask(_ line: String) throws -> JSONValue {
    send(line)
    return try next()
  }

  func send(_ line: String) { send(bytes: Array((line + "\n").utf8)) }

  /// Sends bytes as they are, however long that takes; `false` when the other side is gone.
  @discardableResult
  func send(bytes: [UInt8]) -> Bool { Self.send(bytes, to: descriptor) }

  /// Sends bytes from a thread of its own, while replies are read; to be joined.
  func sendMeanwhile(bytes: [UInt8]) throws -> WorkerThread {
    let descriptor = descriptor
    return try WorkerThread { _ = Self.send(bytes, to: descriptor) }
  }

  private static func send(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.send(
          descriptor,
          $0.baseAddress?.advanced(by: sent),
          bytes.count - sent,
          Int32(MSG_NOSIGNAL)
        )
      }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  /// The next line.
  func next(within limit: Duration = .patience) throws -> JSONValue {
    guard let line = nextLine(within: limit) else {
      throw GatewayProcess.Failure(description: "no reply; so far: \(reader.lines)")
    }
    return try JSONParser.parse(line)
  }

  /// The next line as text; `nil` at the end of the stream, or if none comes in time.
  func nextLine(within limit: Duration = .patience) -> String? {
    let place = taken
    guard let line = reader.waitFor(within: limit, { $0.count > place ? $0[place] : nil }) else {
      return nil
    }
    taken += 1
    return line
  }

  /// The next line that satisfies `condition`; those before it are passed over.
  func next(
    within limit: Duration = .patience,
    where condition: (JSONValue) -> Bool
  ) throws -> JSONValue {
    while true {
      let line = try next(within: limit)
      if condition(line) { return line }
    }
  }

  /// Reads what has come, for later, so that the gateway is not held up.
  func takeIn() { reader.readAvailable() }

  /// Takes what has come so far without looking at it.
  func passOverReplies() {
    reader.readAvailable()
    taken = reader.lines.count
  }

  /// Throws away what the system holds for this client; costs nothing per line.
  func discard() {
    var scratch = [UInt8](repeating: 0, count: 1 << 16)
    while unsafe recv(descriptor, &scratch, scratch.count, Int32(MSG_DONTWAIT)) > 0 {}
  }

  /// Whether the gateway has closed the connection, or does so in time.
  func isClosed(within limit: Duration = .patience) -> Bool {
    _ = reader.waitFor(within: limit) { _ in nil as Bool? }
    return reader.isAtEnd
  }

  /// Says that nothing more comes from here.
  func endInput() { shutdown(descriptor, Int32(SHUT_WR)) }

  private static func connected(to path: String) -> Int32? {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let code = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(descriptor, $0, size)
      }
    }
    guard code == 0 else {
      close(descriptor)
      return nil
    }
    return aboveSelect(descriptor)
  }

  /// The same connection under a number that `select` cannot watch.
  ///
  /// libmosquitto in this process needs the small ones, and tests open hundreds of clients.
  private static func aboveSelect(_ descriptor: Int32) -> Int32 {
    let number = fcntl(descriptor, F_DUPFD_CLOEXEC, 1024)
    guard number >= 0 else { return descriptor }
    close(descriptor)
    return number
  }
}
