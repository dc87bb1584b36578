// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Counts what has come of a packet that has no end yet.
///
/// The library takes a packet of any length that the protocol can express into memory before it
/// calls back, and has no limit to set. It reads until nothing waits: what comes faster than that,
/// as from a broker on the same machine, is seen only when the library is done with it. Costs
/// nothing while each event brings a whole packet.
struct UnfinishedPacket: Hashable, Sendable {
  /// What has come since the last packet that was whole; a little less, never more.
  private(set) var bytes = 0
  private var isOpen = false

  /// How many bytes wait to be read; 0 without a look while packets come whole.
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
