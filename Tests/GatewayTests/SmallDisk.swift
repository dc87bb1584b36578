// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// A separate file system of a few megabytes; requires root.
final class SmallDisk {
  let path: String

  static var isPossible: Bool { geteuid() == 0 }

  init(bytes: Int) throws {
    path = try TemporaryFolder.make("settle-disk")
    guard unsafe mount("tmpfs", path, "tmpfs", 0, "size=\(bytes)") == 0 else {
      throw GatewayProcess.Failure(description: "tmpfs could not be mounted: \(errno)")
    }
  }

  deinit {
    unsafe umount2(path, Int32(MNT_DETACH))
    TemporaryFolder.remove(path)
  }

  /// Fills it up to the last block.
  func fill() {
    let file = unsafe open(path + "/ballast", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    let block = [UInt8](repeating: 1, count: 4096)
    while unsafe write(file, block, block.count) == block.count {}
    close(file)
  }

  func empty() { unsafe unlink(path + "/ballast") }
}
