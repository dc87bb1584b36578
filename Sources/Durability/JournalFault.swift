// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why the journal cannot write at the moment; it keeps trying.
package enum JournalFault: Error, Hashable, Sendable, CustomStringConvertible {
  case diskFull
  case readOnly
  /// The file was damaged while it was in use.
  case damaged(String)
  /// Any other error of the system or SQLite, with the call.
  case failed(call: String, reason: String)

  package var description: String {
    switch self {
    case .diskFull: "the disk is full"
    case .readOnly: "the disk or the folder is read-only"
    case .damaged(let detail): "the file is damaged: \(detail)"
    case .failed(let call, let reason): "\(call): \(reason)"
    }
  }
}
