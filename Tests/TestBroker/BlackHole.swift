// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// A port whose connections are neither accepted nor refused, as behind a firewall that drops them.
package final class BlackHole {
  package let port: Int
  private let listener: Int32
  /// Fill the queue of connections to be accepted; later clients get no answer.
  private var waiting: [Int32] = []

  /// With 0 the kernel chooses the port.
  package init(on port: Int = 0) throws {
    let made = try LoopbackPort.listener(on: port, backlog: 0)
    listener = made.descriptor
    self.port = made.port
    for _ in 0..<4 {
      let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
      let descriptor = socket(AF_INET, kind, 0)
      LoopbackPort.begin(descriptor, to: made.port)
      waiting.append(descriptor)
    }
  }

  deinit {
    for descriptor in waiting { close(descriptor) }
    close(listener)
  }
}
