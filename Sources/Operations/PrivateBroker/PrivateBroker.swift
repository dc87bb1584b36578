// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc

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
    // Not a line per message: a slow disk would hold the answers back.
    lines += ["log_dest stderr", "set_tcp_nodelay true"]
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
    // The waits for an early end are also the pauses: a minute of them, for a busy machine.
    for _ in 0..<12_000 {
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

/// Small text files.
package enum TextFile {
  /// Writes a file; with `isSynced` it is on the disk then.
  package static func write(_ text: String, to path: String, isSynced: Bool = false) throws {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw PrivateBrokerError("\(path) cannot be written: \(errno)") }
    defer { close(descriptor) }
    let bytes = Array(text.utf8)
    guard unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count,
      !isSynced || fsync(descriptor) == 0
    else {
      throw PrivateBrokerError("\(path) cannot be written: \(errno)")
    }
  }

  /// The whole text; `nil` if there is no such file.
  package static func read(_ path: String) -> String? {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return String(decoding: WholeFile.read(descriptor) ?? [], as: UTF8.self)
  }
}

/// Folders in the system's temporary directory.
package enum TemporaryFolder {
  /// A new folder that only this user can read.
  ///
  /// - Throws: ``PrivateBrokerError``, with `errno` set, if it cannot be created.
  package static func make(_ name: String) throws -> String {
    let root = Environment["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
    var template = Array("\(root)/\(name)-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else {
      throw PrivateBrokerError("no folder in \(root): \(errno)")
    }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Removes a folder and all that is below it.
  package static func remove(_ path: String) {
    if let directory = unsafe opendir(path) {
      while let entry = unsafe readdir(directory) {
        let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
          unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
            unsafe String(cString: $0)
          }
        }
        guard name != ".", name != ".." else { continue }
        if unsafe unlink("\(path)/\(name)") != 0, errno == EISDIR { remove("\(path)/\(name)") }
      }
      unsafe closedir(directory)
    }
    unsafe rmdir(path)
  }
}

/// TCP ports on 127.0.0.1.
///
/// The kernel chooses every port at the moment it is bound, so no port is free in between. A server
/// of another process gets its port by ``PortReservation``.
package enum LoopbackPort {
  /// A socket that listens on `port`, which the caller closes; with 0 the kernel chooses the port.
  package static func listener(
    on port: Int = 0,
    backlog: Int32 = 64
  ) throws -> (descriptor: Int32, port: Int) {
    let bound = try bind(port)
    guard listen(bound.descriptor, backlog) == 0 else {
      let code = errno
      close(bound.descriptor)
      throw PrivateBrokerError("listen: \(code)")
    }
    return bound
  }

  /// A socket that is bound to `port` and shares it with servers that set `SO_REUSEADDR`; with 0
  /// the kernel chooses the port.
  static func bind(_ port: Int) throws -> (descriptor: Int32, port: Int) {
    guard let descriptor = socket() else { throw PrivateBrokerError("socket: \(errno)") }
    var on: Int32 = 1
    unsafe setsockopt(
      descriptor,
      SOL_SOCKET,
      SO_REUSEADDR,
      &on,
      socklen_t(MemoryLayout<Int32>.size)
    )
    var address = address(port: port)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    guard unsafe withSocketAddress(&address, { unsafe Glibc.bind(descriptor, $0, size) }) == 0,
      unsafe withSocketAddress(&address, { unsafe getsockname(descriptor, $0, &size) }) == 0
    else {
      let code = errno
      close(descriptor)
      throw PrivateBrokerError("bind 127.0.0.1:\(port): \(code)")
    }
    return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
  }

  /// Starts to connect the non-blocking `descriptor` to `port`.
  package static func begin(_ descriptor: Int32, to port: Int) {
    var address = address(port: port)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = unsafe withSocketAddress(&address) { unsafe connect(descriptor, $0, size) }
  }

  /// Whether a server on `port` accepts connections.
  package static func accepts(_ port: Int) -> Bool {
    guard let descriptor = connected(to: port) else { return false }
    close(descriptor)
    return true
  }

  /// A socket connected to `port`, which the caller closes; `nil` if nobody listens.
  package static func connected(to port: Int) -> Int32? {
    guard let descriptor = socket() else { return nil }
    var address = address(port: port)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    if unsafe withSocketAddress(&address, { unsafe connect(descriptor, $0, size) }) == 0 {
      return descriptor
    }
    close(descriptor)
    return nil
  }

  private static func socket() -> Int32? {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = Glibc.socket(AF_INET, type, 0)
    return descriptor >= 0 ? descriptor : nil
  }

  private static func address(port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(truncatingIfNeeded: port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private static func withSocketAddress<Result>(
    _ address: inout sockaddr_in,
    _ body: (UnsafeMutablePointer<sockaddr>) -> Result
  ) -> Result {
    unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0) }
    }
  }
}

/// A port on 127.0.0.1 for a server of another process, which listens there now or later, and again
/// after a restart.
///
/// A bound socket that does not listen holds the port. A server that sets `SO_REUSEADDR`, as
/// mosquitto and the gateway do, may listen on it too; while none does, connections are refused.
/// The kernel gives the port to no one who binds port 0.
package final class PortReservation {
  package let port: Int
  private let descriptor: Int32

  /// Reserves `preferred` if no server listens there, otherwise a port that the kernel chooses.
  package init(preferring preferred: Int = 0) throws {
    (descriptor, port) = try (try? LoopbackPort.bind(preferred)) ?? LoopbackPort.bind(0)
  }

  deinit {
    close(descriptor)
  }
}
