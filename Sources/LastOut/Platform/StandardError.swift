// Settle
// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif

/// Writes errors without a handler to standard error.
enum StandardError {
  static func write(_ message: String) {
    let line = Array("LastOut: \(message)\n".utf8)
    #if canImport(Darwin)
      _ = unsafe Darwin.write(STDERR_FILENO, line, line.count)
    #elseif canImport(Glibc)
      _ = unsafe Glibc.write(STDERR_FILENO, line, line.count)
    #elseif canImport(Musl)
      _ = unsafe Musl.write(STDERR_FILENO, line, line.count)
    #elseif canImport(Android)
      _ = unsafe Android.write(STDERR_FILENO, line, line.count)
    #endif
  }
}
