// Settle
// SPDX-License-Identifier: Apache-2.0

/// The identifiers of requests that are no changes.
enum ReadID {
  static let describe = "describe"
  static let watch = "watch"
  static let get = "get"
  static let pending = "pending"
  static let flush = "flush"
  static let cancel = "cancel"
}
