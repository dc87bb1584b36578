// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The kernel's counters of this process.
enum Meter {
  /// CPU time of all threads, in nanoseconds.
  static var cpu: UInt64 { time(CLOCK_PROCESS_CPUTIME_ID) }

  /// CPU time of all threads except the main one, in nanoseconds; does not include reading clocks.
  static var cpuBesideMain: UInt64 {
    let main = "\(getpid())"
    var total: UInt64 = 0
    for thread in threads where thread != main {
      // The result of pthread_getcpuclockid: the complement of the thread number, and "time on a
      // CPU".
      if let number = Int32(thread) { total += time(~number << 3 | 6) }
    }
    return total
  }

  /// How often the threads except the main one got the CPU after waiting.
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

  /// The resident memory of the process, in bytes.
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
