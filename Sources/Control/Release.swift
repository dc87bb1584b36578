// Settle
// SPDX-License-Identifier: Apache-2.0

/// The release that is built.
package enum Release {
  /// The version of `settle` and `settled`, as `--version` prints it.
  package static let version = "0.1.0"
}
