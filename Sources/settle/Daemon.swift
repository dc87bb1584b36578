// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Glibc

/// The program `settled`, which has the commands that need more than a socket.
enum Daemon {
  /// Becomes `settled COMMAND ARGUMENTS…`; returns only when that is not possible.
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
      "settle \(command) is done by \(path), which cannot be started: \(reason);"
        + " both programs belong into one folder"
    )
    return .unavailable
  }

  /// `settled` in the folder of the file that is running, symbolic links followed.
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
