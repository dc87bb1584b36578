// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Values

/// Moves the bytes of a ``PipeSession`` between input, gateway and results.
///
/// It stops reading the input while the gateway does not accept requests or the output does not
/// accept results, so memory is bounded for an input of any length.
package struct PipeRunner: ~Copyable {
  /// How the pipe ended.
  package enum End: Hashable, Sendable {
    /// Every line has its result.
    case done
    /// The timeout after the end of the input passed first.
    case timedOut
  }

  /// The number of waiting bytes above which no input is read.
  private static let pauseAt = 256 * 1024
  private static let progressPeriod = Duration.milliseconds(200)

  package var session: PipeSession
  private var client: ControlClient
  private let input: Int32
  private var hasEnded = false

  /// - Parameters:
  ///   - session: Decides what to send and print.
  ///   - client: The connection to the gateway.
  ///   - input: A descriptor to read changes from; it is not closed.
  package init(_ session: PipeSession, client: consuming ControlClient, input: Int32) {
    self.session = session
    self.client = client
    self.input = input
  }

  /// Runs until every line has its result.
  ///
  /// - Parameters:
  ///   - timeout: How long to wait after the end of the input; `nil` for no limit.
  ///   - write: Receives results; may block.
  ///   - onProgress: Called about five times a second.
  /// - Returns: How the pipe ended.
  /// - Throws: If the gateway disconnects, or the input cannot be read.
  package mutating func run(
    timeout: Duration?,
    write: ([UInt8]) -> Void,
    onProgress: ((borrowing PipeSession) -> Void)? = nil
  ) throws(ClientError) -> End {
    var deadline: Deadline?
    var nextProgress = Deadline(after: Self.progressPeriod)
    while true {
      while let (reply, line) = try client.nextReceived() { session.receive(reply, line: line) }
      if !session.results.isEmpty { write(session.dequeueResults()) }
      try send()
      if session.isDone { return .done }
      if hasEnded, deadline == nil, let timeout { deadline = Deadline(after: timeout) }
      if let deadline, deadline.remainingMilliseconds == 0 { return .timedOut }
      if let onProgress, nextProgress.remainingMilliseconds == 0 {
        onProgress(session)
        nextProgress = Deadline(after: Self.progressPeriod)
      }
      try wait(
        milliseconds: [
          deadline?.remainingMilliseconds,
          onProgress == nil ? nil : nextProgress.remainingMilliseconds,
        ].compactMap { $0 }.min() ?? -1
      )
    }
  }

  private mutating func send() throws(ClientError) {
    guard !session.requests.isEmpty else { return }
    let count = try client.sendAvailable(session.requests)
    if count > 0 { session.removeRequests(count) }
  }

  /// Waits until one of the three descriptors is ready, and reads from it.
  private mutating func wait(milliseconds: Int32) throws(ClientError) {
    let isReading = !hasEnded && session.requests.count < Self.pauseAt
    let socketEvents = POLLIN | (session.requests.isEmpty ? 0 : POLLOUT)
    // poll skips a descriptor below zero.
    var entries = [
      pollfd(fd: client.descriptor, events: Int16(socketEvents), revents: 0),
      pollfd(fd: isReading ? input : -1, events: Int16(POLLIN), revents: 0),
    ]
    let ready = unsafe poll(&entries, 2, milliseconds)
    guard ready > 0 else {
      if ready < 0, errno != EINTR { throw ControlClient.failure("poll", "standard input") }
      return
    }
    if entries[0].revents & Int16(POLLIN | POLLHUP | POLLERR) != 0 { try client.receive() }
    if isReading, entries[1].revents != 0 { try read() }
  }

  private mutating func read() throws(ClientError) {
    var chunk = [UInt8](repeating: 0, count: 64 * 1024)
    let count = unsafe chunk.withUnsafeMutableBytes { buffer in
      unsafe Glibc.read(input, buffer.baseAddress, buffer.count)
    }
    if count > 0 {
      session.append(chunk.span.extracting(0..<count))
    } else if count == 0 {
      session.finish()
      hasEnded = true
    } else if errno != EINTR, errno != EAGAIN {
      throw ControlClient.failure("read", "standard input")
    }
  }
}

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
