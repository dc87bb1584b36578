// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import LastOut

/// Remembers nothing: a gateway without a journal.
package struct Forgetful: RestartMemory {
  package init() {}

  package var isJournal: Bool { false }
  package var images: [[Survivor]] { [] }
  package mutating func take(_ event: CommandEvent, _ survivor: Survivor?) {}
  package mutating func takeNews() -> [MemoryNews] { [] }
  package mutating func restart(
    after end: GatewayEnd,
    at now: Moment,
    start: Moment
  ) -> [Survivor] {
    []
  }
}
