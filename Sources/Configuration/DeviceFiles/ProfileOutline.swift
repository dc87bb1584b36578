// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON

/// A built-in profile as it is written, for whoever writes devices that build on it.
package enum ProfileOutline {
  /// The profile called `name`, aliases filled in; `nil` if there is none.
  package static func json(_ name: String) -> JSONValue? {
    let problems = Problems()
    let store = ProfileStore(problems: problems)
    guard let chain = store.chain(from: name, at: .start(of: "")), chain.count == 1 else {
      return nil
    }
    return chain[0].node.json(problems)
  }
}
