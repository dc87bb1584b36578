// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What the kernel counts about this process.
enum Meter {
  /// CPU time of all threads, in nanoseconds.
  static var cpu: UInt64 { time(CLOCK_PROCESS_CPUTIME_ID) }

  /// CPU time of all threads beside the main one, in nanoseconds; no reading of a clock is in it.
  static var cpuBesideMain: UInt64 {
    let main = "\(getpid())"
    var total: UInt64 = 0
    for thread in threads where thread != main {
      // What pthread_getcpuclockid makes of a thread: its number's complement, and "time on a CPU".
      if let number = Int32(thread) { total += time(~number << 3 | 6) }
    }
    return total
  }

  /// How often the threads beside the main one were given the CPU after they had waited.
  static var wakeUpsBesideMain: Int {
    let main = "\(getpid())"
    var total = 0
    for thread in threads where thread != main {
      for line in read("/proc/self/task/\(thread)/status").split(separator: "\n")
      where line.hasPrefix("voluntary_ctxt_switches:") {
        total += line.split(separator: "\t").last.flatMap { Int($0) } ?? 0
      }
    }
    return total
  }

  /// Memory that the process holds, in bytes.
  static var resident: Int {
    let pages = read("/proc/self/statm").split(separator: " ").dropFirst().first
    return (pages.flatMap { Int($0) } ?? 0) * sysconf(Int32(_SC_PAGESIZE))
  }

  private static func time(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    unsafe clock_gettime(clock, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  private static var threads: [String] {
    guard let folder = unsafe opendir("/proc/self/task") else { return [] }
    defer { unsafe closedir(folder) }
    var names: [String] = []
    while let entry = unsafe readdir(folder) {
      let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names
  }

  private static func read(_ path: String) -> String {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var buffer = [UInt8](repeating: 0, count: 8192)
    let count = unsafe Glibc.read(file, &buffer, buffer.count)
    return String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
  }
}
