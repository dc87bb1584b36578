// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The path of the control socket.
package enum SocketPath {
  /// The longest path that the kernel accepts, in bytes.
  package static let longest = 107

  /// The system-wide path.
  package static let system = "/run/settle/settle.sock"

  /// What the help of an option says that names the socket.
  package static let help =
    "The gateway's control socket; default: SETTLE_SOCKET, then the first that exists of"
    + " settle.sock in $XDG_RUNTIME_DIR, /run/user/UID and /run/settle."

  /// The socket to connect to: `--socket`, then `SETTLE_SOCKET`, then the first that exists of the
  /// user's and the system's.
  package static func find(
    named: String?,
    environment: (String) -> String? = environment,
    user: UInt32 = currentUser
  ) throws(ClientError) -> String {
    if let path = named ?? nonEmpty(environment("SETTLE_SOCKET")) { return path }
    let candidates = usual(environment: environment, user: user)
    // An unreadable folder hides the socket; connecting reports it.
    guard let path = candidates.first(where: { unsafe access($0, F_OK) == 0 || errno == EACCES })
    else {
      throw .noSocket(lookedAt: candidates)
    }
    return path
  }

  /// The default paths, in order of preference.
  ///
  /// The user's folder comes from `XDG_RUNTIME_DIR`. Cron and services do not have that variable,
  /// so its usual value is among the paths too.
  package static func usual(
    environment: (String) -> String? = environment,
    user: UInt32 = currentUser
  ) -> [String] {
    let standard = folder(ofUser: user)
    let named = nonEmpty(environment("XDG_RUNTIME_DIR")) ?? standard
    let folders = named == standard ? [standard] : [named, standard]
    return folders.map { "\($0)/settle.sock" } + [system]
  }

  /// Where a gateway creates its socket if nothing names one: in the user's folder for files of
  /// running programs, or in the system's where the user has none.
  package static func standard(
    environment: (String) -> String? = environment,
    user: UInt32 = currentUser
  ) -> String {
    if let folder = nonEmpty(environment("XDG_RUNTIME_DIR")) { return "\(folder)/settle.sock" }
    let folder = folder(ofUser: user)
    // Root's services belong to the system.
    guard user != 0, unsafe access(folder, W_OK) == 0 else { return system }
    return "\(folder)/settle.sock"
  }

  private static func folder(ofUser user: UInt32) -> String { "/run/user/\(user)" }

  /// The user who runs this process.
  package static var currentUser: UInt32 { getuid() }

  /// The value of an environment variable.
  package static func environment(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }

  private static func nonEmpty(_ text: String?) -> String? {
    text.flatMap { $0.isEmpty ? nil : $0 }
  }
}
