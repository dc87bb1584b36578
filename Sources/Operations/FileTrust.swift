// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Who may use a file that others must not read or write.
package struct FileTrust: Hashable, Sendable {
  package enum Flaw: Hashable, Sendable {
    /// The file belongs to another user, who may change it at any time.
    case foreignOwner(UInt32, expected: UInt32)
    /// Other users can read or write it; `mode` has its permission bits.
    case openToOthers(mode: UInt32)
  }

  private let owner: UInt32
  private let permissions: UInt32

  /// `owner` and `mode` are those of the file.
  package init(owner: UInt32, mode: UInt32) {
    self.owner = owner
    permissions = mode & 0o7777
  }

  /// What is wrong with a file that only `user` may use.
  package func flaw(for user: UInt32) -> Flaw? {
    if owner != user { return .foreignOwner(owner, expected: user) }
    return permissions & 0o077 == 0 ? nil : .openToOthers(mode: permissions)
  }

  /// What is wrong with a file that an administrator may provide for `user`: it may belong to root
  /// too, and its group may read it.
  ///
  /// Root checks the files of a service, which may belong to its user.
  package func flawOfProvided(for user: UInt32) -> Flaw? {
    if owner != user, owner != 0, user != 0 { return .foreignOwner(owner, expected: user) }
    return permissions & 0o027 == 0 ? nil : .openToOthers(mode: permissions)
  }

  /// The user that this process acts for.
  package static var user: UInt32 { geteuid() }
}
