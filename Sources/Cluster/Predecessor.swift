// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a write replaces or follows: it is stored only if nothing else was stored in between.
///
/// It says so twice, since neither is enough. The engine's leader compares the revision when a
/// write arrives, and stores it later: before nats-server 2.9.21, several that arrive within
/// milliseconds may all pass (upstream's issue 4320), and after an election revisions may differ.
/// The count is compared when a write is stored, on every server alike; but the engine remembers it
/// for half a minute only.
package struct Predecessor: Hashable, Sendable {
  /// The number by which the engine's leader has it; 0: there is none.
  package var revision: UInt64
  /// Its own count, which only grows; 0: there is none.
  package var count: UInt64

  package init(revision: UInt64, count: UInt64) {
    self.revision = revision
    self.count = count
  }

  package static let none = Self(revision: 0, count: 0)
}
