// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
/// Why a journal is refused: using it would damage it, or trust a file that is not trustworthy.
package enum JournalRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  /// Written by a later version; the file is left as it is.
  case newerFormat(path: String, found: Int, supported: Int)
  /// A database of another program.
  case notAJournal(path: String)
  case symbolicLink(path: String)
  case notARegularFile(path: String)
  /// The file has another name, under which another process could use it.
  case hardLink(path: String)
  case foreignOwner(path: String, owner: UInt32, expected: UInt32)
  /// Other users can read or write it; `mode` has its permission bits.
  case openToOthers(path: String, mode: UInt32)
  /// Another process has it open.
  case inUse(path: String)
  /// The system has no thread or descriptor left for the writer.
  case noThread(path: String, reason: String)

  package var description: String {
    switch self {
    case .newerFormat(let path, let found, let supported):
      "journal \(path): has format \(found), written by a newer version; this one reads up to"
        + " \(supported). It was left untouched: use the newer version, or name another path"
    case .notAJournal(let path):
      "journal \(path): is a database of another program; name another path"
    case .symbolicLink(let path):
      "journal \(path): is a symbolic link; give the file itself"
    case .notARegularFile(let path):
      "journal \(path): is no regular file"
    case .hardLink(let path):
      "journal \(path): has another name (a hard link), under which a second process could use it;"
        + " remove that name, or give a copy"
    case .foreignOwner(let path, let owner, let expected):
      "journal \(path): belongs to user \(owner); it must belong to user \(expected), who runs this"
    case .openToOthers(let path, let mode):
      "journal \(path): mode \(String(mode, radix: 8)) lets others read or write it; allowed is"
        + " 600 (chmod 600 \(path))"
    case .inUse(let path):
      "journal \(path): another process uses it"
    case .noThread(let path, let reason):
      "journal \(path): its writer cannot be started: \(reason)"
    }
  }
}

/// Why a journal was not opened.
enum JournalProblem: Error {
  /// It must not be used until the operator fixes it.
  case refused(JournalRefusal)
  /// It cannot be used at the moment.
  case fault(JournalFault)

  /// Runs `body`, whose failure is a fault.
  static func faults<Result: ~Copyable>(
    _ body: () throws(JournalFault) -> Result
  ) throws(JournalProblem) -> Result {
    do throws(JournalFault) { return try body() } catch { throw .fault(error) }
  }
}
