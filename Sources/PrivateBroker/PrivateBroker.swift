// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// A private mosquitto process on a loopback port of its own, for tests and the demo.
///
/// It dies with this process, however that ends. Its port is reserved, and its folder kept, as long
/// as this object lives. Not thread safe.
package final class PrivateBroker {
  /// Options beyond a listener on loopback.
  package struct Options: Sendable {
    /// Further lines of mosquitto.conf.
    package var lines: [String] = []
    /// Users and their passwords; with any, anonymous clients are refused.
    package var users: [String: String] = [:]
    /// Serves TLS with this certificate and key, instead of plain TCP.
    package var certificate: (file: String, key: String)?
    /// The address of its listener; another one than 127.0.0.1 has no reserved port.
    package var address = "127.0.0.1"
    /// Also listens on a Unix socket in the broker's folder.
    package var hasSocket = false
    package init() {}
  }

  /// The port; the first ``start()`` may change it.
  package var port: Int { reservation.port }
  /// A temporary folder for configuration, log and socket.
  package let directory: String
  /// The broker's log since the first start, over all restarts.
  package var logFile: String { directory + "/mosquitto.log" }
  package var socketPath: String { directory + "/mosquitto.sock" }
  /// The process; `nil` while the broker is not running.
  package private(set) var processID: Int32?
  private let options: Options
  private var reservation: PortReservation
  /// Whether clients may know the port.
  private var hasRun = false
  private var process: GuardedProcess?

  /// Reserves a port and prepares a folder; the broker does not run yet.
  ///
  /// - Throws: ``PrivateBrokerError`` if there is no port or no folder.
  package init(options: Options = Options()) throws {
    self.options = options
    reservation = try PortReservation()
    directory = try TemporaryFolder.make("settle-broker")
  }

  deinit {
    stop()
    TemporaryFolder.remove(directory)
  }

  /// Starts the broker and returns when it accepts connections.
  ///
  /// If another server listens on the port, the first start moves to another port, a few times at
  /// most.
  ///
  /// - Throws: ``PrivateBrokerError`` if there is no mosquitto, or it does not listen.
  package func start() throws {
    guard process == nil else { return }
    var movesLeft = hasRun ? 0 : 3
    while try !launch() {
      guard movesLeft > 0 else { throw PrivateBrokerError("port \(port) is in use: \(log())") }
      movesLeft -= 1
      reservation = try PortReservation()
    }
    hasRun = true
  }

  /// Starts the process and waits until it listens; `false` if its port is in use.
  private func launch() throws -> Bool {
    let program = try Self.findProgram()
    try writeConfiguration()
    let earlierLog = log().utf8.count
    let process = try GuardedProcess(
      [program, "-c", directory + "/mosquitto.conf"],
      log: logFile
    )
    self.process = process
    processID = process.processID
    return try awaitListener(logAfter: earlierLog)
  }

  /// Ends the broker with a signal and waits for that.
  package func stop(signal number: Int32 = SIGTERM) {
    guard let process else { return }
    process.end(signal: number)
    self.process = nil
    processID = nil
  }

  /// Ends the broker and starts it on the same port.
  package func restart(signal number: Int32 = SIGTERM) throws {
    stop(signal: number)
    try start()
  }

  /// Suspends the broker: connections stay open, nothing is answered.
  package func pause() { process?.signal(SIGSTOP) }
  package func resume() { process?.signal(SIGCONT) }

  /// The broker's log so far.
  package func log() -> String { TextFile.read(logFile) ?? "" }

  private func writeConfiguration() throws {
    var lines = ["listener \(port) \(options.address)"]
    if let certificate = options.certificate {
      lines += ["certfile \(certificate.file)", "keyfile \(certificate.key)"]
    }
    if options.hasSocket { lines.append("listener 0 \(socketPath)") }
    if options.users.isEmpty {
      lines.append("allow_anonymous true")
    } else {
      lines += ["allow_anonymous false", "password_file \(directory)/passwords"]
      try writePasswords()
    }
    // Started by root, mosquitto would become a user who cannot read the folder.
    if getuid() == 0 { lines.append("user root") }
    lines += ["log_dest stderr", "log_type all", "set_tcp_nodelay true"]
    lines += options.lines
    try TextFile.write(lines.joined(separator: "\n") + "\n", to: directory + "/mosquitto.conf")
  }

  private func writePasswords() throws {
    let file = directory + "/passwords"
    let text = options.users.map { "\($0):\($1)\n" }.joined()
    try TextFile.write(text, to: file)
    let tool = try SpawnedProcess(arguments: ["mosquitto_passwd", "-U", file])
    guard tool.wait(milliseconds: 10_000) == .exited(code: 0) else {
      throw PrivateBrokerError("mosquitto_passwd -U failed")
    }
  }

  /// Waits until the broker logs that it runs; `false` if it ends because its port is in use.
  ///
  /// A connection is no proof: another server may accept it.
  private func awaitListener(logAfter start: Int) throws -> Bool {
    // The waits for an early end are also the pauses: ten seconds of them.
    for _ in 0..<2000 {
      let ending = process?.wait(milliseconds: 5)
      let fresh = String(decoding: log().utf8.dropFirst(start), as: UTF8.self)
      let lines = fresh.split(separator: "\n")
      guard let ending else {
        if lines.contains(where: { $0.hasSuffix(" running") }) { return true }
        continue
      }
      process = nil
      processID = nil
      if lines.contains(where: { $0.hasSuffix("Error: Address already in use") }) { return false }
      throw PrivateBrokerError("mosquitto ended (\(ending)): \(fresh)")
    }
    stop()
    throw PrivateBrokerError("mosquitto does not listen on port \(port): \(log())")
  }

  private static func findProgram() throws -> String {
    let path = Environment["PATH"] ?? ""
    let folders = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin"]
    for folder in folders {
      let program = folder + "/mosquitto"
      if unsafe access(program, X_OK) == 0 { return program }
    }
    throw PrivateBrokerError("mosquitto is not installed: not in \(folders.joined(separator: ":"))")
  }
}

/// Why a private broker, or a file, folder, pipe or port that it needs, could not be had.
package struct PrivateBrokerError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String
  init(_ description: String) { self.description = description }
}
