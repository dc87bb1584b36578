// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CBuild

/// The release that is built.
package enum Release {
  /// The version of both programs, the package and the announcements to Home Assistant.
  ///
  /// Written only here; `make release-check` compares CHANGELOG.md with it.
  package static let version = "0.2.0"

  /// What `--version` prints: the version, and the commit in parentheses where it is known.
  ///
  /// `make build` passes the commit; a commit with `-dirty` behind it has uncommitted changes.
  package static var description: String {
    let commit = unsafe String(cString: settle_build_commit())
    return commit.isEmpty ? version : "\(version) (\(commit))"
  }
}
