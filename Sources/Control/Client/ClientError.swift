// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// Why a request to the gateway failed, in words for a terminal.
package enum ClientError: Error, Hashable, Sendable, CustomStringConvertible {
  /// None of the usual sockets exists.
  case noSocket(lookedAt: [String])
  /// The socket does not exist, or no gateway listens.
  case notRunning(path: String)
  /// The file mode denies access; `group` has access, if it is known.
  case denied(path: String, group: String?)
  case pathTooLong(String)
  /// A system call failed for another reason.
  case system(call: String, path: String, reason: String)
  /// The gateway closed the connection.
  case closed
  /// No reply arrived in time.
  case timedOut(after: Duration)
  /// A received line is not a reply.
  case unreadable(String)

  package var description: String {
    switch self {
    case .noSocket(let paths):
      #"no gateway is running: there is no \#(Self.list(paths)); start it with "settle run"; if its"#
        + #" settings have "socket:", name that path with --socket or SETTLE_SOCKET"#
    case .notRunning(let path): #"no gateway answers at \#(path); start it with "settle run""#
    case .denied(let path, .some(let group)):
      #"permission denied at \#(path); members of the group "\#(group)" may use it"#
    case .denied(let path, .none): "permission denied at \(path)"
    case .pathTooLong(let path):
      "a socket's path has at most \(SocketPath.longest) bytes; found \(path.utf8.count)"
    case .system(let call, let path, let reason): "\(call) \(path): \(reason)"
    case .closed: "the gateway closed the connection"
    case .timedOut(let duration): "no answer within \(DurationText.text(duration))"
    case .unreadable(let line): #"not a reply: "\#(Excerpt.of(line))""#
    }
  }

  /// `a, b or c`.
  private static func list(_ paths: [String]) -> String {
    guard let last = paths.last, paths.count > 1 else { return paths.joined() }
    return paths.dropLast().joined(separator: ", ") + " or " + last
  }
}
