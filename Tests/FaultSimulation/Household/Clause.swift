// Settle
// SPDX-License-Identifier: Apache-2.0

/// A rule of the contract that lives in a household check.
package enum Clause: Int, CaseIterable, Hashable, Sendable {
  /// Order between two values of one key.
  case orderOfKey
  /// Order between an urgent value, such as STOP, and the keys that it ends.
  case orderOfEnds
  case orderOfExcludes
  case orderOfImplies
  /// Order between a group's change and a member's.
  case orderOfGroups
  /// Order between presses of one device.
  case orderOfPresses
  /// Any of these orders, if the older message is sent by a later process, and the newer one was
  /// not an urgent value that had waited for the disk for as long as one does at most.
  case orderAfterCrash
  /// What a person asked of a device is its state once all is quiet.
  case stateOfCovers
  case stateOfLamps
  case stateOfValves
  case stateOfOthers
  /// The same for members of groups.
  case stateOfMembers
  /// No command ends as changed at the device although nobody touched it.
  case inventedHand
  /// At rest the target is the state of the device.
  case targetAtRest
  /// A step and a toggle count from the target that a person sees.
  case relativeBase
  /// Fast toggles are slowed and never rejected.
  case feedback
  /// A device that lost its power gets back what it had, and nothing after something newer.
  case restored
}

/// The clauses that end a life when they are violated; others are only counted.
package struct Clauses: Sendable {
  private var held: Set<Clause>

  package init(_ held: some Sequence<Clause>) { self.held = Set(held) }

  package static let all = Clauses(Clause.allCases)
  /// Clauses by their names, separated by commas; `all` for all; `nil` if one is unknown.
  package init?(named names: String) {
    guard names != "all" else {
      self = .all
      return
    }
    let found = names.split(separator: ",").map { name in
      Clause.allCases.first { "\($0)" == name }
    }
    guard !found.contains(nil) else { return nil }
    self.init(found.compactMap { $0 })
  }

  package func contains(_ clause: Clause) -> Bool { held.contains(clause) }
}
