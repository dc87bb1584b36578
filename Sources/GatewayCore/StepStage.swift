// Settle
// SPDX-License-Identifier: Apache-2.0

/// Where a step of the core is; the stages of one step follow each other in this order.
enum StepStage {
  /// Between two steps.
  case idle
  /// One bounded step of a reload.
  case reloading
  /// Work for the journal's thread, which then runs beside everything that follows.
  case store
  /// Commands, then routed messages: what users wait for.
  case publishing
  /// Log lines and records, then replies and events in the order in which they happened.
  case emitting
  /// Retained topics that show where keys stand.
  case states
  /// Requests for the states of devices: they have what room is left.
  case requesting
  /// The phases of a shutdown.
  case ending
}
