// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CLinux
package import Durability
internal import Glibc
internal import LastOut

/// Reads this machine's clocks.
package enum SystemClock {
  /// Every clock, now; the boot identifier is read once.
  package static func read() -> JournalClock {
    JournalClock(
      moment: Moment(nanoseconds: UInt64(clamping: nanoseconds(of: CLOCK_MONOTONIC))),
      stamps: JournalStamps(
        boot: boot,
        bootMilliseconds: nanoseconds(of: CLOCK_BOOTTIME) / 1_000_000,
        wallMilliseconds: nanoseconds(of: CLOCK_REALTIME) / 1_000_000
      ),
      isSynchronised: isSynchronised
    )
  }

  /// Whether a time source disciplines the wall clock: the estimated error is below its limit.
  ///
  /// The kernel starts at the limit and raises the error while nothing corrects the clock; at the
  /// limit it also sets `STA_UNSYNC` and reports `TIME_ERROR`. Those two are not asked: chrony
  /// leaves them set unless it also keeps the hardware clock. This is what `timedatectl` shows.
  /// Where the call is forbidden, as in the shipped unit, other signs count.
  private static var isSynchronised: Bool {
    var state = timex()
    guard unsafe adjtimex(&state) >= 0 else { return hasSigns() }
    return state.maxerror < errorLimit
  }

  /// Whether a time source has left a sign of its work since the machine started.
  ///
  /// systemd-timesyncd creates `mark`. chrony and ntpsec tell the kernel how far the international
  /// atomic time is ahead, with the table of leap seconds that Debian sets up for both; before that
  /// the kernel assumes nothing.
  package static func hasSigns(
    mark: String = "/run/systemd/timesync/synchronized",
    aheadOfWall: Int64? = nil
  ) -> Bool {
    let seconds =
      aheadOfWall ?? (nanoseconds(of: CLOCK_TAI) - nanoseconds(of: CLOCK_REALTIME))
      / 1_000_000_000
    return unsafe seconds > 0 || access(mark, F_OK) == 0
  }

  /// The kernel's `NTP_PHASE_LIMIT`: 16 s, in microseconds.
  private static let errorLimit = 16_000_000

  private static let boot: BootIdentifier = {
    if let words = readBootIdentifier() { return words }
    // Unknown: it must not equal any other boot.
    return BootIdentifier(high: .random(in: 1...(.max)), low: .random(in: 1...(.max)))
  }()

  private static func readBootIdentifier() -> BootIdentifier? {
    let descriptor = unsafe open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = unsafe Glibc.read(descriptor, &bytes, bytes.count)
    guard count > 0 else { return nil }
    let text = String(decoding: bytes[..<count], as: UTF8.self)
    let digits = text.filter(\.isHexDigit)
    guard digits.count == 32, let high = UInt64(digits.prefix(16), radix: 16),
      let low = UInt64(digits.suffix(16), radix: 16)
    else { return nil }
    return BootIdentifier(high: high, low: low)
  }

  private static func nanoseconds(of clock: clockid_t) -> Int64 {
    var time = timespec()
    unsafe clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
