// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The path of the control socket.
package enum SocketPath {
  /// The longest path that the kernel accepts, in bytes.
  package static let longest = 107

  /// The system-wide path.
  package static let system = "/run/settle/settle.sock"

  /// The socket to connect to: `--socket`, then `SETTLE_SOCKET`, then the first that exists of the
  /// user's and the system's.
  package static func find(
    named: String?,
    environment: (String) -> String? = environment
  ) throws(ClientError) -> String {
    if let path = named ?? nonEmpty(environment("SETTLE_SOCKET")) { return path }
    let candidates = usual(environment: environment)
    // An unreadable folder hides the socket; connecting reports it.
    guard let path = candidates.first(where: { unsafe access($0, F_OK) == 0 || errno == EACCES })
    else {
      throw .noSocket(lookedAt: candidates)
    }
    return path
  }

  /// The default paths, in order of preference.
  package static func usual(environment: (String) -> String? = environment) -> [String] {
    let user = nonEmpty(environment("XDG_RUNTIME_DIR")).map { ["\($0)/settle.sock"] } ?? []
    return user + [system]
  }

  /// The value of an environment variable.
  package static func environment(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }

  private static func nonEmpty(_ text: String?) -> String? {
    text.flatMap { $0.isEmpty ? nil : $0 }
  }
}
