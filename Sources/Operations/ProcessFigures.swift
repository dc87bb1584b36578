// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc

/// The kernel's counters of this process, in the units of Prometheus' client libraries.
///
/// Reading them costs a few system calls; a figure that is not available is `nil`.
package struct ProcessFigures: Hashable, Sendable {
  /// User and system CPU time of all threads, in seconds.
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

  /// Field 22 of `stat`, in ticks since the machine started; the process name may contain any
  /// character, but no parenthesis follows its own.
  private static func start() -> Double? {
    let text = line("/proc/self/stat")
    guard let name = text.lastIndex(of: ")") else { return nil }
    let fields = text[text.index(after: name)...].split(separator: " ")
    guard fields.count > 19, let ticks = Double(fields[19]) else { return nil }
    // The kernel derives the boot time from the current wall clock, so setting the clock moves it.
    let boot = line("/proc/stat", beginning: "btime ").dropFirst(6)
    return Double(boot).map { $0 + ticks / Double(sysconf(Int32(_SC_CLK_TCK))) }
  }

  /// The first line of a file with this prefix, without its end; empty if there is none.
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

  /// The number of entries of a folder, without the two dots and the descriptor that reads it.
  private static func count(of path: String) -> UInt64? {
    guard let folder = unsafe opendir(path) else { return nil }
    defer { unsafe closedir(folder) }
    var count = 0
    while unsafe readdir(folder) != nil { count += 1 }
    return UInt64(max(0, count - 3))
  }
}

/// The kernel's copies of this process's memory, which holds passwords and tokens.
package enum CoreDumps {
  /// Whether a crash of this process may leave its memory in a file.
  package static var areEnabled: Bool { settle_is_dumpable() == 1 }

  /// Disables core dumps of this process, by files and by programs of the service manager.
  ///
  /// A debugger of the same user cannot attach either; root can. Child processes that execute a
  /// program are not affected.
  package static func disable() {
    _ = settle_disable_core_dumps()
  }
}
