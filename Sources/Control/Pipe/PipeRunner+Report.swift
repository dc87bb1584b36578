// Settle
// SPDX-License-Identifier: Apache-2.0

/// The result of a pipe, for the program that ran it.
package struct PipeReport: Hashable, Sendable {
  /// 0, 1, 65, 69 or 75, after sysexits.
  package let exitCode: Int32
  /// The message for standard error.
  package let message: String?

  package init(exitCode: Int32, message: String?) {
    self.exitCode = exitCode
    self.message = message
  }
}

extension PipeRunner {
  /// Runs until every line has its result, and returns a report.
  ///
  /// - Parameters:
  ///   - timeout: How long to wait after the end of the input; `nil` for no limit.
  ///   - write: Receives results.
  ///   - isPerson: Whether standard error is a terminal.
  ///   - show: Shows progress on the terminal, without a line break.
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
      let rest = open == 0 ? "" : "; the outcome of \(open) changes is unknown"
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
  /// A prefix of ids that no other pipe has.
  package static func freshPrefix() -> String {
    "pipe-" + String(UInt64.random(in: 0...UInt64.max), radix: 36) + "-"
  }
}

/// The progress line of a pipe on a terminal, which is rewritten in place.
struct PipeProgress {
  private static let clear = "\r\u{1B}[K"
  private var hasWritten = false

  /// The text to write for the state of `session`.
  mutating func text(for session: borrowing PipeSession) -> String {
    hasWritten = true
    return Self.clear + "\(session.lineCount) lines: \(session.tally.description), "
      + "\(session.openChanges) in progress"
  }

  /// The text that erases the line; `nil` if none was written.
  var ending: String? { hasWritten ? Self.clear : nil }
}
