// Settle
// SPDX-License-Identifier: Apache-2.0

/// What both lives of some seeds met.
package struct LifeCoverage: CustomStringConvertible, Sendable {
  package private(set) var prompt = Coverage()
  package private(set) var household = HouseholdCoverage()

  package init() {}

  init(_ prompt: Coverage, _ household: HouseholdCoverage) {
    self.prompt = prompt
    self.household = household
  }

  package mutating func add(_ other: LifeCoverage) {
    prompt.add(other.prompt)
    household.add(other.household)
  }

  package var description: String { "\(prompt)\nin households: \(household)" }
}
