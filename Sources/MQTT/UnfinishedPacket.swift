// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Counts the bytes of a packet that has not arrived completely.
///
/// The library reads a packet of any length into memory before it calls back, and has no limit to
/// set. It reads until nothing waits, so a packet that arrives faster than that, as from a broker
/// on the same machine, is seen only when it is complete. Costs nothing while each event brings a
/// complete packet.
struct UnfinishedPacket: Hashable, Sendable {
  /// Bytes since the last complete packet; a little less, never more.
  private(set) var bytes = 0
  private var isOpen = false

  /// How many bytes wait to be read; 0 without a system call while packets arrive completely.
  func waiting(at descriptor: Int32) -> Int {
    isOpen ? Self.unread(at: descriptor) : 0
  }

  /// How many bytes the kernel has that nobody has read; costs a system call.
  static func unread(at descriptor: Int32) -> Int {
    var count: Int32 = 0
    return unsafe ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
  }

  /// Everything that waited was read; `isFinished` if that brought the end of some packet.
  mutating func read(_ waiting: Int, isFinished: Bool) {
    bytes = isFinished ? 0 : bytes + waiting
    isOpen = !isFinished
  }
}
