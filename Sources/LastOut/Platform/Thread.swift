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

/// Starts threads.
@usableFromInline
enum Thread {
  /// Runs `body` on a new thread.
  ///
  /// - Returns: Zero, or the error number of the system.
  static func start(
    priority: TaskPriority,
    _ body: @escaping @Sendable () -> Void
  ) -> Int32 {
    let start = unsafe Unmanaged.passRetained(Start(priority: priority, body: body))
    let failure = unsafe create(start.toOpaque())
    if failure != 0 { unsafe start.release() }
    return failure
  }

  /// Whether the caller holds the main actor's thread.
  static var isMain: Bool {
    #if canImport(Darwin)
      return pthread_main_np() != 0
    #else
      #if canImport(Dispatch)
        // After `dispatch_main` any thread can serve the main queue.
        if QueueMark.main.isCurrent { return true }
      #endif
      return number.map { $0 == "\(getpid())" } ?? false
    #endif
  }

  /// Lets threads that wait for a lock have it, which the caller has just released.
  @usableFromInline
  static func letOthersIn() { usleep(1) }

  private static func create(_ context: UnsafeMutableRawPointer) -> Int32 {
    #if canImport(Darwin)
      var thread: pthread_t?
      let failure = unsafe pthread_create(
        &thread,
        nil,
        { context in
          unsafe Start.run(context)
          return nil
        },
        context
      )
      if let thread = unsafe thread { unsafe pthread_detach(thread) }
      return failure
    #else
      #if canImport(Musl)
        guard var thread = unsafe pthread_t(bitPattern: 1) else { return EINVAL }
      #else
        var thread = pthread_t()
      #endif
      let failure = unsafe pthread_create(
        &thread,
        nil,
        { context in
          if let context = unsafe context { unsafe Start.run(context) }
          return nil
        },
        context
      )
      if failure == 0 { pthread_detach(thread) }
      return failure
    #endif
  }

  /// The start argument of a new thread.
  private final class Start: Sendable {
    private let priority: TaskPriority
    private let body: @Sendable () -> Void

    init(priority: TaskPriority, body: @escaping @Sendable () -> Void) {
      self.priority = priority
      self.body = body
    }

    @unsafe
    static func run(_ context: UnsafeMutableRawPointer) {
      let start = unsafe Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
      // The program's own threads handle signals.
      var signals = sigset_t()
      unsafe sigfillset(&signals)
      unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
      Thread.setPriority(start.priority)
      start.body()
    }
  }

  /// Gives the calling thread the scheduler's class for `priority`.
  private static func setPriority(_ priority: TaskPriority) {
    #if canImport(Darwin)
      let quality: qos_class_t =
        switch priority {
        case .high: QOS_CLASS_USER_INITIATED
        case .low: QOS_CLASS_UTILITY
        case .background: QOS_CLASS_BACKGROUND
        default: QOS_CLASS_DEFAULT
        }
      pthread_set_qos_class_self_np(quality, 0)
    #else
      // On Linux each thread has its own nice value; without privileges it can only be raised.
      if priority < .low {
        setNice(15)
      } else if priority < .medium {
        setNice(5)
      }
    #endif
  }

  #if !canImport(Darwin)
    private static func setNice(_ value: Int32) {
      #if canImport(Glibc)
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, value)
      #else
        setpriority(PRIO_PROCESS, 0, value)
      #endif
    }

    /// The number of the calling thread; `nil` without a `/proc` file system.
    private static var number: String? {
      // The link is "PROCESS/task/THREAD".
      var link = [CChar](repeating: 0, count: 64)
      let length = unsafe readlink("/proc/thread-self", &link, link.count)
      guard length > 0, let slash = link.lastIndex(of: CChar(UInt8(ascii: "/"))) else { return nil }
      return String(
        decoding: link[(slash + 1)..<length].map(UInt8.init(bitPattern:)),
        as: UTF8.self
      )
    }

    /// Makes the kernel end the calling thread's waits on time instead of up to 50 µs late.
    ///
    /// If that is not permitted, nothing changes.
    static func sharpenTimer() {
      guard let thread = number else { return }
      let file = unsafe open("/proc/\(thread)/timerslack_ns", O_WRONLY | O_CLOEXEC)
      guard file >= 0 else { return }
      _ = unsafe write(file, "1", 1)
      close(file)
    }
  #else
    /// The kernel's own slack for a thread of the default class is small.
    static func sharpenTimer() {}
  #endif
}

/// An object for each thread, while a function runs on it.
@safe struct ThreadValue<Object: AnyObject>: Sendable {
  private let key: pthread_key_t

  init() {
    var key = pthread_key_t()
    let failure = unsafe pthread_key_create(&key, nil)
    precondition(failure == 0, "Thread-local storage cannot be created: error \(failure).")
    self.key = key
  }

  /// The object of the calling thread.
  var value: Object? {
    guard let pointer = unsafe pthread_getspecific(key) else { return nil }
    return unsafe Unmanaged<Object>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// Calls `body` with `object` as the object of the calling thread.
  func withValue(_ object: Object, _ body: () -> Void) {
    let outer = unsafe pthread_getspecific(key)
    unsafe pthread_setspecific(key, Unmanaged.passUnretained(object).toOpaque())
    withExtendedLifetime(object, body)
    unsafe pthread_setspecific(key, outer)
  }
}

/// The default clock of the library.
///
/// It never jumps, and stops while the machine is suspended, like `SuspendingClock`.
@usableFromInline
enum MonotonicTime {
  @usableFromInline static var now: Moment {
    #if canImport(Darwin)
      return Moment(nanoseconds: clock_gettime_nsec_np(CLOCK_UPTIME_RAW))
    #else
      var time = timespec()
      unsafe clock_gettime(CLOCK_MONOTONIC, &time)
      return Moment(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    #endif
  }
}

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
