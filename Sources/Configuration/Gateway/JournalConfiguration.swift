// Settle
// SPDX-License-Identifier: Apache-2.0

package struct JournalConfiguration: Hashable, Sendable {
  package var path: String
  package var commit: Duration = .milliseconds(100)
  package init(path: String) { self.path = path }
}
