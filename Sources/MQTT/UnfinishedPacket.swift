// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Counts the bytes of an incomplete packet.
///
/// The library reads a packet of any length into memory before it calls back, and has no limit
/// option. It reads until the socket is empty, so a packet that arrives faster than that, as from a
/// broker on the same machine, is detected only when it is complete. This costs nothing while each
/// event completes a packet.
struct UnfinishedPacket: Hashable, Sendable {
  /// The bytes since the last complete packet; slightly underestimated, never overestimated.
  private(set) var bytes = 0
  private var isOpen = false

  /// The number of unread bytes; 0 without a system call while packets arrive completely.
  func waiting(at descriptor: Int32) -> Int {
    isOpen ? Self.unread(at: descriptor) : 0
  }

  /// The number of unread bytes in the kernel; costs a system call.
  static func unread(at descriptor: Int32) -> Int {
    var count: Int32 = 0
    return unsafe ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
  }

  /// Records that all waiting bytes were read; `isFinished` if that completed a packet.
  mutating func read(_ waiting: Int, isFinished: Bool) {
    bytes = isFinished ? 0 : bytes + waiting
    isOpen = !isFinished
  }
}
