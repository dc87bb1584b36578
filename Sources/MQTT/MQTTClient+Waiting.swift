// Settle
// SPDX-License-Identifier: Apache-2.0

extension MQTTClient {
  /// How many bytes the broker has sent that were not read yet; 0 without a connection.
  ///
  /// It grows when messages arrive faster than they are read, up to the size of the kernel's buffer;
  /// the rest waits at the broker. Costs a system call.
  package var waitingBytes: Int {
    guard descriptor >= 0 else { return 0 }
    return UnfinishedPacket.unread(at: descriptor)
  }
}
