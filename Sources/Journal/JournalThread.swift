// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CLinux
package import Durability
internal import Glibc
import LastOut

/// The journal's file, and the thread that owns it: one piece of work in, one result out.
///
/// It belongs to the event loop's thread. Only the initializer waits for the disk: it reads the
/// file before the loop runs. A ``JournalPlan`` decides what is written and when.
package final class JournalThread: ValueStore {
  /// The plan, which starts with the content of the file.
  package let plan: JournalPlan
  private let writer: JournalWriter
  private let decode: ([UInt8]) -> (any JournalValue)?

  /// Opens or creates the file and starts the thread.
  ///
  /// A disk that cannot be written, or a damaged file, is not an error; ``plan`` reports it.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - settings: The pace of commits.
  ///   - vfs: SQLite's file system; `nil` for the usual one.
  ///   - clock: Reads every clock.
  ///   - decode: Reads the bytes of a value; `nil` for bytes that are none.
  ///   - onResult: Called on the writer's thread; must only wake the loop.
  /// - Throws: If the file must not be used: a newer format, another program's, a link, open to
  ///   others, or in use.
  package init(
    path: String,
    settings: JournalPlan.Settings = .init(),
    vfs: String? = nil,
    clock: @escaping @Sendable () -> JournalClock = SystemClock.read,
    decode: @escaping ([UInt8]) -> (any JournalValue)?,
    onResult: @escaping @Sendable () -> Void
  ) throws(JournalRefusal) {
    let now = clock()
    var store = JournalStore(path: path, vfs: vfs)
    do throws(JournalProblem) {
      let contents = try store.open(clock: now)
      plan = JournalPlan(settings: settings, contents: contents.decoded(by: decode))
    } catch {
      switch error {
      case .refused(let refusal): throw refusal
      case .fault(let fault): plan = JournalPlan(settings: settings, fault: fault, at: now.moment)
      }
    }
    do throws(JournalFault) {
      writer = try JournalWriter(store: store, clock: clock, onResult: onResult)
    } catch {
      throw .noThread(path: path, reason: error.description)
    }
    self.decode = decode
  }

  deinit {
    writer.beginClosing()
  }

  package func submit(_ work: JournalWork) { writer.submit(work) }

  package func dequeueResults() -> [JournalResult] {
    writer.dequeueResults().map { result in
      guard case .reopened(let contents) = result else { return result }
      return .reopened(contents.decoded(by: decode))
    }
  }

  /// Ends the thread after its current work; `onResult` is called once more, then ``isClosed``.
  package func beginClosing() { writer.beginClosing() }

  package var isClosed: Bool { writer.isClosed }
}

extension JournalContents {
  /// The same entries with their values decoded, in the order of their sequence numbers; bytes that
  /// are not a value stay bytes.
  fileprivate func decoded(by decode: ([UInt8]) -> (any JournalValue)?) -> Self {
    var contents = self
    contents.entries = entries.sorted { $0.sequence < $1.sequence }.map { entry in
      var entry = entry
      if let value = decode(entry.value) { entry.content = .unwritten(value) }
      return entry
    }
    return contents
  }
}

/// Why a journal is refused: using it would damage it, or trust a file that is not trustworthy.
package enum JournalRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  /// Written by a later version; the file is left as it is.
  case newerFormat(path: String, found: Int, supported: Int)
  /// A database of another program.
  case notAJournal(path: String)
  case symbolicLink(path: String)
  case notARegularFile(path: String)
  /// The file has another name, under which another process could use it.
  case hardLink(path: String)
  case foreignOwner(path: String, owner: UInt32, expected: UInt32)
  /// Other users can read or write it; `mode` has its permission bits.
  case openToOthers(path: String, mode: UInt32)
  /// Another process has it open.
  case inUse(path: String)
  /// The system has no thread or descriptor left for the writer.
  case noThread(path: String, reason: String)

  package var description: String {
    switch self {
    case .newerFormat(let path, let found, let supported):
      "journal \(path): has format \(found), written by a newer version; this one reads up to"
        + " \(supported). It was left untouched: use the newer version, or name another path"
    case .notAJournal(let path):
      "journal \(path): is a database of another program; name another path"
    case .symbolicLink(let path):
      "journal \(path): is a symbolic link; give the file itself"
    case .notARegularFile(let path):
      "journal \(path): is no regular file"
    case .hardLink(let path):
      "journal \(path): has another name (a hard link), under which a second process could use it;"
        + " remove that name, or give a copy"
    case .foreignOwner(let path, let owner, let expected):
      "journal \(path): belongs to user \(owner); it must belong to user \(expected), who runs this"
    case .openToOthers(let path, let mode):
      "journal \(path): mode \(String(mode, radix: 8)) lets others read or write it; allowed is"
        + " 600 (chmod 600 \(path))"
    case .inUse(let path):
      "journal \(path): another process uses it"
    case .noThread(let path, let reason):
      "journal \(path): its writer cannot be started: \(reason)"
    }
  }
}

/// Why a journal was not opened.
enum JournalProblem: Error {
  /// It must not be used until the operator fixes it.
  case refused(JournalRefusal)
  /// It cannot be used at the moment.
  case fault(JournalFault)

  /// The problem as a fault of `call`, for a journal that is in use.
  func asFault(of call: String) -> JournalFault {
    switch self {
    case .refused(let refusal): .failed(call: call, reason: refusal.description)
    case .fault(let fault): fault
    }
  }
}

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
