// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Finds out whether a port speaks TLS.
///
/// Most servers with TLS close a connection that begins with something else, and do not say why.
package enum TLSGreeting {
  /// Whether bytes begin with a record of TLS: an alert, or a part of the handshake.
  static func isRecord(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 3 else { return false }
    return (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 0x03 && bytes[2] <= 0x04
  }

  /// Whether a host answers the beginning of a TLS handshake at a port.
  ///
  /// Blocks: to resolve the name, and for up to `seconds` each to connect and to get an answer.
  package static func isAnswered(host: String, port: Int, seconds: Int = 3) -> Bool {
    guard let descriptor = connected(host, port, seconds: seconds) else { return false }
    defer { close(descriptor) }
    let hello = clientHello
    guard unsafe send(descriptor, hello, hello.count, Int32(MSG_NOSIGNAL)) == hello.count
    else { return false }
    var answer = [UInt8](repeating: 0, count: 3)
    let count = unsafe recv(descriptor, &answer, answer.count, Int32(MSG_WAITALL))
    return count == answer.count && isRecord(answer)
  }

  /// A socket that is connected to the first address that accepts.
  private static func connected(_ host: String, _ port: Int, seconds: Int) -> Int32? {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var first: UnsafeMutablePointer<addrinfo>?
    guard unsafe getaddrinfo(host, String(port), &hints, &first) == 0 else { return nil }
    defer { unsafe freeaddrinfo(first) }
    var next = unsafe first
    while let address = unsafe next?.pointee {
      unsafe next = address.ai_next
      let kind = unsafe address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue)
      let descriptor = unsafe socket(address.ai_family, kind, address.ai_protocol)
      guard descriptor >= 0 else { continue }
      var limit = timeval(tv_sec: seconds, tv_usec: 0)
      let size = socklen_t(MemoryLayout<timeval>.size)
      for option in [SO_SNDTIMEO, SO_RCVTIMEO] {
        unsafe setsockopt(descriptor, SOL_SOCKET, option, &limit, size)
      }
      if unsafe connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 { return descriptor }
      close(descriptor)
    }
    return nil
  }

  /// The first message of a handshake, of TLS 1.2: four cipher suites and no extension.
  ///
  /// A server that wants more answers with an alert, which is an answer too.
  private static let clientHello: [UInt8] = {
    let suites: [UInt8] = [0x13, 0x01, 0xC0, 0x2F, 0xC0, 0x30, 0x00, 0x9C]
    var body: [UInt8] = [0x03, 0x03] + [UInt8](repeating: 0x5E, count: 32) + [0]
    body += [0, UInt8(suites.count)] + suites + [1, 0]
    let message = [0x01, 0, 0, UInt8(body.count)] + body
    return [0x16, 0x03, 0x01, 0, UInt8(message.count)] + message
  }()
}
