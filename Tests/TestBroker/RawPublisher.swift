// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// A client that only publishes, at QoS 0 and as fast as the broker accepts it; not thread safe.
package final class RawPublisher {
  private let descriptor: Int32
  private var buffer: [UInt8] = []

  /// Connects with MQTT 3.1.1 and waits for the CONNACK.
  package init(port: Int) throws {
    guard let descriptor = LoopbackPort.connected(to: port) else {
      throw TestBrokerError("no broker at port \(port)")
    }
    self.descriptor = descriptor
    let hello: [UInt8] = [0x10, 12, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 2, 0, 0, 0, 0]
    send(hello)
    var answer = [UInt8](repeating: 0, count: 4)
    guard unsafe recv(descriptor, &answer, 4, Int32(MSG_WAITALL)) == 4, answer[3] == 0
    else { throw TestBrokerError("no CONNACK at port \(port)") }
  }

  deinit { close(descriptor) }

  /// Publishes; small messages are buffered until ``flush()`` or until there are more.
  package func publish(_ topic: String, _ payload: [UInt8]) {
    var length = 2 + topic.utf8.count + payload.count
    buffer.append(0x30)
    repeat {
      buffer.append(UInt8(length & 0x7F) | (length > 0x7F ? 0x80 : 0))
      length >>= 7
    } while length > 0
    buffer += [UInt8(topic.utf8.count >> 8), UInt8(topic.utf8.count & 0xFF)]
    buffer += Array(topic.utf8) + payload
    if buffer.count > 1 << 16 { flush() }
  }

  package func publish(_ topic: String, _ text: String) { publish(topic, Array(text.utf8)) }

  package func flush() {
    send(buffer)
    buffer = []
  }

  private func send(_ bytes: [UInt8]) {
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
      guard count > 0 else { return }
      sent += count
    }
  }
}
