// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Glibc

/// The program `settled`, which runs the commands that need more than a socket.
enum Daemon {
  /// Executes `settled COMMAND ARGUMENTS…` in place of this process; returns only on failure.
  static func execute(_ command: String, _ arguments: [String]) -> ExitCode {
    guard let path = path() else {
      Terminal.complain("/proc/self/exe cannot be read, so settled cannot be found")
      return .unavailable
    }
    let texts = [path, command] + arguments
    var words = unsafe texts.map { text in unsafe strdup(text) }
    unsafe words.append(nil)
    unsafe execv(path, words)
    let reason = unsafe String(cString: strerror(errno))
    for index in unsafe words.indices { unsafe free(words[index]) }
    Terminal.complain(
      "settle \(command) runs \(path), which cannot be started: \(reason);"
        + " both programs must be in the same folder"
    )
    return .unavailable
  }

  /// `settled` in the folder of the running program, after following symbolic links.
  private static func path() -> String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe readlink("/proc/self/exe", &buffer, buffer.count)
    guard count > 0 else { return nil }
    let bytes = buffer.prefix(count).map { UInt8(bitPattern: $0) }
    let file = String(decoding: bytes, as: UTF8.self)
    let folder = file.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    return folder.joined(separator: "/") + "/settled"
  }
}
