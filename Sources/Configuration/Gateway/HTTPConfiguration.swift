// Settle
// SPDX-License-Identifier: Apache-2.0

package struct HTTPConfiguration: Hashable, Sendable {
  package var listen: [String]
  package var tokenFile: String?
  package init(listen: [String], tokenFile: String? = nil) {
    self.listen = listen
    self.tokenFile = tokenFile
  }
}
