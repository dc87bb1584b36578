// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Finds the group that owns a socket, for the message when permission is denied.
package enum SocketOwner {
  /// The name, or else the number, of the group that owns the socket, or the folder that hides it.
  package static func group(of path: String) -> String? {
    var info = stat()
    if unsafe stat(path, &info) != 0 {
      let folder = path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
      guard unsafe stat(folder.joined(separator: "/"), &info) == 0 else { return nil }
    }
    return name(ofGroup: info.st_gid, in: groups()) ?? "\(info.st_gid)"
  }

  /// Finds a group in the text of `/etc/group`.
  ///
  /// The C library's own look-up needs shared libraries at run time, which a static program does
  /// not have.
  package static func name(ofGroup number: UInt32, in text: String) -> String? {
    for line in text.split(separator: "\n") {
      let fields = line.split(separator: ":", omittingEmptySubsequences: false)
      if fields.count >= 3, UInt32(fields[2]) == number { return String(fields[0]) }
    }
    return nil
  }

  private static func groups() -> String {
    let descriptor = unsafe open("/etc/group", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 256 * 1024)
    let count = unsafe bytes.withUnsafeMutableBytes { buffer in
      unsafe read(descriptor, buffer.baseAddress, buffer.count)
    }
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }
}
