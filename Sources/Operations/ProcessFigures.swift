// Settle
// SPDX-License-Identifier: Apache-2.0

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
    var (wall, boot) = (timespec(), timespec())
    guard unsafe clock_gettime(CLOCK_REALTIME, &wall) == 0,
      unsafe clock_gettime(CLOCK_BOOTTIME, &boot) == 0
    else { return nil }
    let age = seconds(boot) - ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    return seconds(wall) - age
  }

  private static func seconds(_ time: timespec) -> Double {
    Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
  }

  /// The first kilobyte of a file that has one line.
  private static func line(_ path: String) -> String {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 1024)
    let count = unsafe read(file, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
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
