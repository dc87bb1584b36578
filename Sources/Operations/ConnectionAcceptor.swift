// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc

/// Accepts connections from listening sockets, and refuses them when no file descriptors are left.
///
/// It keeps a spare descriptor. Without one, a process that is out of descriptors could neither
/// accept nor refuse a waiting client, and the loop would report the socket endlessly.
package struct ConnectionAcceptor: ~Copyable {
  /// The result of one call of ``accept(from:)``.
  package enum Outcome {
    /// A connection's descriptor, which is non-blocking and not inherited by child processes.
    case connection(Int32)
    /// No descriptor was left; the client that waited longest was disconnected.
    case outOfDescriptors
    /// No client is waiting.
    case none
  }

  private var spare: Int32

  package init() { spare = Self.openSpare() }

  deinit { if spare >= 0 { close(spare) } }

  /// Accepts the connection that has waited longest on the non-blocking `listener`.
  package mutating func accept(from listener: Int32) -> Outcome {
    let descriptor = settle_accept(listener)
    if descriptor >= 0 { return .connection(descriptor) }
    guard errno == EMFILE || errno == ENFILE else { return .none }
    disconnectFirst(of: listener)
    return .outOfDescriptors
  }

  private mutating func disconnectFirst(of listener: Int32) {
    if spare >= 0 { close(spare) }
    let descriptor = settle_accept(listener)
    if descriptor >= 0 { close(descriptor) }
    spare = Self.openSpare()
  }

  private static func openSpare() -> Int32 { unsafe open("/dev/null", O_RDONLY | O_CLOEXEC) }
}
