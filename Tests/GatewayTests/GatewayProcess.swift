// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import TestBroker

/// The built `settled` as a child process, which is killed at the end at the latest.
///
/// It ends with this process too, however that ends. Not thread safe.
final class GatewayProcess {
  /// Why a gateway could not be had, or did not do something in time.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  let socketPath: String
  private let process: SpawnedProcess
  /// Its closing end tells the guard beside the child that this process is gone.
  private let lifeline: Lifeline
  private let errors: LineReader

  /// Starts `settled run --config FILE` with further arguments; returns at once.
  ///
  /// No limit of the shell keeps it from leaving a core dump.
  init(
    configuration: String,
    socketPath: String,
    arguments: [String] = [],
    environment: [String: String] = [:],
    descriptorLimit: Int? = nil
  ) throws {
    self.socketPath = socketPath
    lifeline = try Lifeline()
    errors = try LineReader()
    // The shell becomes the gateway; the guard beside it waits for the end of this process.
    let script = """
      exec 3<&0
      (read line <&3 || kill -9 $$) >/dev/null 2>&1 &
      \(descriptorLimit.map { "ulimit -n \($0)" } ?? ":")
      ulimit -c unlimited 2>/dev/null
      exec "$@" </dev/null 3<&-
      """
    var variables = Variables.all().filter { !$0.key.hasPrefix("SETTLE_") }
    variables.merge(environment) { $1 }
    process = try SpawnedProcess(
      arguments: ["/bin/sh", "-c", script, "sh", BuiltProgram.path("settled"), "run", "--config"]
        + [configuration] + arguments,
      environment: variables,
      input: lifeline.reader,
      output: .discarded,
      errors: .descriptor(errors.writer)
    )
    errors.closeWriter()
    Patience.follow(process.processID)
  }

  deinit {
    process.signal(SIGKILL)
    process.signal(SIGCONT)
    process.wait(milliseconds: 5000)
    lifeline.release()
  }

  /// Returns when the control socket takes connections.
  func awaitSocket() throws {
    var wait = Wait()
    while wait.remaining() != nil {
      if ControlClient.accepts(socketPath) { return }
      // Also the pause between two attempts.
      if let ending = process.wait(milliseconds: 5) {
        throw Failure(description: "settled ended (\(ending)): \(log())")
      }
    }
    throw Failure(description: "no control socket at \(socketPath): \(log())")
  }

  func signal(_ number: Int32) { process.signal(number) }

  /// Lets every write to a file fail beyond so many bytes; `nil` lets them through again.
  func limitFiles(to bytes: UInt?) throws {
    let limit = "--fsize=\(bytes.map { String($0) } ?? "unlimited"):unlimited"
    let tool = try SpawnedProcess(
      arguments: ["/usr/bin/prlimit", "--pid", String(process.processID), limit]
    )
    guard case .exited(0)? = tool.wait() else {
      throw Failure(description: "prlimit failed")
    }
  }

  /// Waits for the end: its exit code, or -SIGNAL; `nil` if it does not come in time.
  func waitForExit(within limit: Duration = .patience) -> Int32? {
    var wait = Wait(within: limit)
    while true {
      // Read on, so that the child is never held up by its own log.
      errors.readAvailable()
      switch process.wait(milliseconds: 5) {
      case .exited(let code): return code
      case .signalled(let number): return -number
      case nil: if wait.remaining(errors.lines.count) == nil { return nil }
      }
    }
  }

  /// Waits for a line on standard error that contains `text`.
  func waitForLine(
    containing text: String,
    within limit: Duration = .patience
  ) -> String? {
    errors.waitFor(within: limit) { lines in lines.first { $0.contains(text) } }
  }

  /// The port on 127.0.0.1 where HTTP listens, as the log says.
  func httpPort() throws -> Int {
    guard let line = waitForLine(containing: "HTTP listens address=127.0.0.1:"),
      let port = Int(line.split(separator: ":").last ?? "")
    else { throw Failure(description: "no HTTP: \(log())") }
    return port
  }

  /// Everything on standard error so far.
  func log() -> String {
    errors.readAvailable()
    return errors.lines.joined(separator: "\n")
  }

  /// Lines on standard error that contain `text`, so far.
  func lines(containing text: String) -> [String] {
    errors.readAvailable()
    return errors.lines.filter { $0.contains(text) }
  }

  /// Waits until its control socket has no client; `false` if that does not come.
  ///
  /// The kernel lists each connection to the socket, and the socket itself. The process's own
  /// folder in `/proc` belongs to root.
  func waitForNoClient(within time: Duration = .patience) -> Bool {
    var wait = Wait(within: time)
    while true {
      // Also the pause between two looks.
      if process.wait(milliseconds: 5) != nil { return false }
      let sockets = (TextFile.read("/proc/net/unix") ?? "").split(separator: "\n")
      if sockets.count(where: { $0.hasSuffix(" " + socketPath) }) == 1 { return true }
      if wait.remaining() == nil { return false }
    }
  }

  /// Whether the process has ended and the kernel wrote its memory to a file.
  var leftCoreDump: Bool { process.leftCoreDump }

  /// Resident memory in bytes.
  func residentBytes() -> Int {
    let text = TextFile.read("/proc/\(process.processID)/statm") ?? ""
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  /// The most resident memory it has had so far, in bytes.
  func peakBytes() -> Int {
    let text = TextFile.read("/proc/\(process.processID)/status") ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return (line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 1024
  }

  /// Processor time used so far, in clock ticks of a hundredth of a second.
  func processorTicks() -> Int { ProcessorTime.ticks(of: process.processID) }
}

/// The environment of this process.
enum Variables {
  static func all() -> [String: String] {
    var result: [String: String] = [:]
    var entry = unsafe environ
    while let text = unsafe entry.pointee {
      let parts = unsafe String(cString: text).split(separator: "=", maxSplits: 1)
      if let name = parts.first { result[String(name)] = parts.count > 1 ? String(parts[1]) : "" }
      unsafe entry += 1
    }
    return result
  }
}
