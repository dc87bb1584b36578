// Settle
// SPDX-License-Identifier: Apache-2.0

/// A child process whose end is an event of the loop.
package final class ChildProcess {
  package typealias Output = SpawnedProcess.Output
  package typealias Ending = SpawnedProcess.Ending

  private let process: SpawnedProcess
  private var watch: IOWatch?

  package var processID: Int32 { process.processID }
  /// `nil` while it runs.
  package var ending: Ending? { process.ending }

  /// Starts a program; `onExit` is called once, on the loop's thread.
  ///
  /// The loop keeps the child alive until its end; see ``SpawnedProcess`` for the parameters.
  package init(
    arguments: [String],
    environment: [String: String]? = nil,
    input: Int32? = nil,
    output: Output = .inherited,
    errors: Output = .inherited,
    loop: EventLoop,
    onExit: @escaping (Ending) -> Void
  ) throws(OperationsError) {
    process = try SpawnedProcess(
      arguments: arguments,
      environment: environment,
      input: input,
      output: output,
      errors: errors
    )
    watch = try loop.watch(process.descriptor, for: .read) { [self] _ in
      guard let ending = process.wait(milliseconds: 0) else { return }
      watch?.cancel()
      watch = nil
      onExit(ending)
    }
  }

  /// Sends a signal; without effect once the process has ended.
  package func signal(_ number: Int32) {
    process.signal(number)
  }
}
