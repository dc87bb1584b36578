// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// How far a member is with a partition that it takes, drives or gives away.
package enum HeldPartition: Hashable, Sendable {
  /// The claim is being written.
  case claiming(epoch: UInt64)
  /// Its log is being closed for earlier owners, and read.
  case opening(epoch: UInt64)
  /// A renewal that is sent after `since` allows the session to connect.
  case mayConnect(epoch: UInt64, since: Moment)
  case connecting(epoch: UInt64)
  /// The session is connected; a renewal that is sent after `since` allows the first publish.
  case mayDrive(epoch: UInt64, since: Moment)
  case driving(epoch: UInt64)
  case handingOver(epoch: UInt64)
  /// That it is free is being written.
  case releasing(epoch: UInt64)

  package var epoch: UInt64 {
    switch self {
    case .claiming(let epoch), .opening(let epoch), .mayConnect(let epoch, _),
      .connecting(let epoch), .mayDrive(let epoch, _), .driving(let epoch),
      .handingOver(let epoch), .releasing(let epoch):
      epoch
    }
  }
}
