// Settle
// SPDX-License-Identifier: Apache-2.0

/// What is built here.
package enum Release {
  /// The version of `settle` and `settled`, as `--version` prints it.
  package static let version = "0.1.0"
}
