// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Devices
import Durability
import GatewayCore
import JSON
package import Journal
import JSONParsing
import LastOut
import Operations

/// The journal's file: opening it, and reading what it holds.
extension GatewayHost {
  /// Opens the journal that the configuration names, if any; call it before ``start()``.
  ///
  /// A disk that cannot be written, or a damaged file, is no error: the log says so.
  ///
  /// - Throws: When the file must not be used: a newer format, another program's, in use.
  package func openJournal() throws(JournalRefusal) {
    guard let wanted = configuration.journal else { return }
    let waker: Waker
    do throws(OperationsError) {
      waker = try loop.makeWaker(named: "journal") {}  // What is due is done after the batch.
    } catch {
      throw .noThread(path: wanted.path, reason: error.description)
    }
    var settings = JournalPlan.Settings()
    settings.commit = wanted.commit
    let thread = try JournalThread(
      path: wanted.path,
      settings: settings,
      decode: { DurableValue($0) },
      onResult: { waker.wake() }
    )
    core.openStore(thread.plan, path: wanted.path)
    journal = thread
  }
}

extension DurableValue {
  /// Reads what ``bytes`` wrote; `nil` for anything else.
  ///
  /// Members that a later version adds are ignored.
  init?(_ bytes: [UInt8]) {
    guard let json = try? JSONParser.parse(bytes.span), let value = json["value"],
      let id = json["id"]
    else { return nil }
    self.init(value: value, id: id)
    source = json["source"]?.string
    if case .object(let members)? = json["options"] { options = members }
    responseTopic = json["reply"]?.string
    correlationData = json["correlation"]?.string.flatMap(Self.bytes(hex:))
  }

  private static func bytes(hex: String) -> [UInt8]? {
    let digits = hex.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
    guard digits.count == hex.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map {
      UInt8(digits[$0] << 4 | digits[$0 + 1])
    }
  }
}
