// Settle
// SPDX-License-Identifier: Apache-2.0

/// How a pipe went, for the program that ran it.
package struct PipeReport: Hashable, Sendable {
  /// After sysexits: 0, 1, 65, 69 or 75.
  package let exitCode: Int32
  /// What to say about it on standard error.
  package let message: String?

  package init(exitCode: Int32, message: String?) {
    self.exitCode = exitCode
    self.message = message
  }
}

extension PipeRunner {
  /// Runs until every line has its result, and says how it went.
  ///
  /// - Parameters:
  ///   - timeout: How long to wait after the end of the input; for ever where there is none.
  ///   - write: Takes results.
  ///   - isPerson: Whether somebody reads what is said beside the results.
  ///   - show: Shows text on a person's terminal, without a line break.
  /// - Returns: The exit code, and a line for standard error.
  package mutating func report(
    timeout: Duration?,
    write: ([UInt8]) -> Void,
    isPerson: Bool,
    show: ((String) -> Void)?
  ) -> PipeReport {
    var progress = PipeProgress()
    let end: End
    do throws(ClientError) {
      end = try run(
        timeout: timeout,
        write: write,
        onProgress: show.map { show in { show(progress.text(for: $0)) } }
      )
    } catch {
      progress.ending.map { show?($0) }
      let open = session.openChanges
      let rest = open == 0 ? "" : "; what became of \(open) changes is not known"
      return PipeReport(exitCode: 69, message: "\(error)\(rest)")
    }
    progress.ending.map { show?($0) }
    let tally = session.tally
    switch end {
    case .timedOut:
      return PipeReport(
        exitCode: 75,
        message: "\(tally.description); \(session.openChanges) were not sent in time"
      )
    case .done:
      let exitCode: Int32 = tally.failed > 0 ? 1 : tally.refused > 0 ? 65 : 0
      return PipeReport(
        exitCode: exitCode,
        message: exitCode != 0 || isPerson ? tally.description : nil
      )
    }
  }
}

extension PipeSession {
  /// A beginning of ids that no other pipe has.
  package static func freshPrefix() -> String {
    "pipe-" + String(UInt64.random(in: 0...UInt64.max), radix: 36) + "-"
  }
}

/// The line that shows a person how far a pipe has come, written over and over.
struct PipeProgress {
  private static let clear = "\r\u{1B}[K"
  private var hasWritten = false

  /// The text to write for the state of `session`.
  mutating func text(for session: borrowing PipeSession) -> String {
    hasWritten = true
    return Self.clear + "\(session.lineCount) lines: \(session.tally.description), "
      + "\(session.openChanges) under way"
  }

  /// What takes the line away again; `nil` where there is none.
  var ending: String? { hasWritten ? Self.clear : nil }
}
