// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A port on 127.0.0.1 for a server of another process, which listens there now or later, and again
/// after a restart.
///
/// A bound socket that does not listen holds the port. A server that sets `SO_REUSEADDR`, as
/// mosquitto and the gateway do, may listen on it too; while none does, connections are refused.
/// The kernel gives the port to no one who binds port 0.
package final class PortReservation {
  package let port: Int
  private let descriptor: Int32

  /// Reserves `preferred` if no server listens there, otherwise a port that the kernel chooses.
  package init(preferring preferred: Int = 0) throws {
    (descriptor, port) = try (try? LoopbackPort.bind(preferred)) ?? LoopbackPort.bind(0)
  }

  deinit {
    close(descriptor)
  }
}
