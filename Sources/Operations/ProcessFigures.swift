// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc

/// What the kernel counts of this process, in the units that Prometheus' clients use.
///
/// Reading it costs a few system calls; a figure that the kernel does not give is `nil`.
package struct ProcessFigures: Hashable, Sendable {
  /// Seconds of CPU time, in the program and in the kernel for it, all threads.
  package var cpuSeconds: Double?
  package var residentBytes: UInt64?
  package var openDescriptors: UInt64?
  package var descriptorLimit: UInt64?
  /// Seconds since 1970.
  package var startTime: Double?

  package init() {
    var usage = rusage()
    if unsafe getrusage(RUSAGE_SELF.rawValue, &usage) == 0 {
      cpuSeconds = Self.seconds(usage.ru_utime) + Self.seconds(usage.ru_stime)
    }
    var limit = rlimit()
    if unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      descriptorLimit = UInt64(limit.rlim_cur)
    }
    residentBytes = Self.residentPages().map { $0 * UInt64(max(0, sysconf(Int32(_SC_PAGESIZE)))) }
    openDescriptors = Self.count(of: "/proc/self/fd")
    startTime = Self.start()
  }

  private static func seconds(_ time: timeval) -> Double {
    Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000
  }

  /// The second number of `statm`.
  private static func residentPages() -> UInt64? {
    let numbers = line("/proc/self/statm").split(separator: " ")
    return numbers.count > 1 ? UInt64(numbers[1]) : nil
  }

  /// Field 22 of `stat`, in ticks since the machine started; the name before may have any
  /// character, but no parenthesis comes after its own.
  private static func start() -> Double? {
    let text = line("/proc/self/stat")
    guard let name = text.lastIndex(of: ")") else { return nil }
    let fields = text[text.index(after: name)...].split(separator: " ")
    guard fields.count > 19, let ticks = Double(fields[19]) else { return nil }
    // The machine's own start is as the kernel counts it now, so a clock that is set moves it.
    let boot = line("/proc/stat", beginning: "btime ").dropFirst(6)
    return Double(boot).map { $0 + ticks / Double(sysconf(Int32(_SC_CLK_TCK))) }
  }

  /// The first line of a file that begins so, without its end; empty if there is none.
  private static func line(_ path: String, beginning: String = "") -> String {
    guard let file = unsafe fopen(path, "re") else { return "" }
    defer { unsafe fclose(file) }
    var (text, size): (UnsafeMutablePointer<CChar>?, Int) = (nil, 0)
    defer { unsafe free(text) }
    while unsafe getline(&text, &size, file) > 0, let read = unsafe text {
      let line = unsafe String(cString: read)
      if line.hasPrefix(beginning) { return String(line.prefix { !$0.isNewline }) }
    }
    return ""
  }

  /// How many entries a folder has, less the two dots and the descriptor that reads it.
  private static func count(of path: String) -> UInt64? {
    guard let folder = unsafe opendir(path) else { return nil }
    defer { unsafe closedir(folder) }
    var count = 0
    while unsafe readdir(folder) != nil { count += 1 }
    return UInt64(max(0, count - 3))
  }
}
