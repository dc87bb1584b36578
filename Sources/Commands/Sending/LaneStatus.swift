// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a lane does at the moment.
package struct LaneStatus: Hashable, Sendable {
  package let name: String
  /// How many commands wait in the lane.
  package var waiting: Int
  /// How many commands take up room in the window; `nil`, like all that follows, without a window.
  package let inFlight: Int?
  /// How many commands may be in flight.
  package let window: Int?
  /// How long devices take to confirm a command, on average; `nil` until one has.
  package let roundTrip: Duration?
  /// How many commands were not confirmed in time, those of devices that were silent before left
  /// out.
  package let lost: Int?
}
