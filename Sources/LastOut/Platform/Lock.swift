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

public import Synchronization

/// A value behind a lock that costs two atomic operations while no other thread wants it.
///
/// A thread that finds it locked waits in the ``ParkingLot``. Unlike `Synchronization.Mutex`, it is
/// visible to the thread sanitizer on Linux.
// The pointer never changes, and its memory is only accessed while the lock is held.
@usableFromInline
@frozen
@safe struct Lock<State: ~Copyable>: ~Copyable, @unchecked Sendable {
  /// 0 while unlocked, 1 while locked, 2 while threads may wait.
  @usableFromInline let word = Atomic<UInt32>(0)
  @usableFromInline let state: UnsafeMutablePointer<State>

  @inlinable
  init(_ state: consuming sending State) {
    unsafe self.state = UnsafeMutablePointer<State>.allocate(capacity: 1)
    unsafe self.state.initialize(to: state)
  }

  @inlinable
  deinit {
    unsafe state.deinitialize(count: 1)
    unsafe state.deallocate()
  }

  /// Calls `body` with exclusive access to the value.
  @inlinable
  @inline(__always)
  func withLock<Result>(_ body: (inout State) -> Result) -> Result {
    if !word.compareExchange(expected: 0, desired: 1, ordering: .acquiring).exchanged {
      waitForLock()
    }
    defer { if word.exchange(0, ordering: .releasing) == 2 { wakeOthers() } }
    // The thread sanitizer takes an access through the property for one to the property.
    let state = unsafe state
    return unsafe body(&state.pointee)
  }

  @usableFromInline
  @inline(never)
  func waitForLock() {
    // Most locks are held for less than a microsecond.
    for _ in 0..<64 where word.load(ordering: .relaxed) == 0 {
      if word.compareExchange(expected: 0, desired: 1, ordering: .acquiring).exchanged { return }
    }
    while word.exchange(2, ordering: .acquiring) != 0 {
      ParkingLot.wait(for: UInt(bitPattern: unsafe state)) { word.load(ordering: .relaxed) == 2 }
    }
  }

  @usableFromInline
  @inline(never)
  func wakeOthers() { ParkingLot.wake(UInt(bitPattern: unsafe state)) }
}

/// Where threads wait for locks.
enum ParkingLot {
  private static let places = (0..<64).map { _ in Monitor(()) }

  private static func place(of address: UInt) -> Monitor<Void> {
    places[Int((address &* 0x9E37_79B9_7F4A_7C15) >> 58)]
  }

  /// Waits until a wake for the same address, unless `isLocked` is false by now.
  static func wait(for address: UInt, while isLocked: () -> Bool) {
    var hasWaited = false
    place(of: address).wait { _ -> WaitStep<Void> in
      if hasWaited || !isLocked() { return .done(()) }
      hasWaited = true
      return .wait(until: nil)
    }
  }

  /// Wakes the threads that wait for the address.
  static func wake(_ address: UInt) {
    let place = place(of: address)
    // A thread between its check and its wait holds this lock.
    place.withLock { _ in }
    place.broadcast()
  }
}

/// A value behind a ``Lock``, shared by reference.
@usableFromInline
package final class Locked<State: ~Copyable>: Sendable {
  @usableFromInline let lock: Lock<State>

  @usableFromInline
  package init(_ state: consuming sending State) {
    lock = Lock(state)
  }

  /// Calls `body` with exclusive access to the value.
  @inlinable
  @inline(__always)
  package func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    lock.withLock(body)
  }
}

/// A value behind a mutex with a condition to wait for its changes.
// The pointer never changes, and its memory is only accessed while the mutex is held.
@safe final class Monitor<State: ~Copyable>: @unchecked Sendable {
  private let mutex = RawMutex()
  private let condition = RawCondition()
  private let state: UnsafeMutablePointer<State>

  init(_ state: consuming sending State) {
    unsafe self.state = UnsafeMutablePointer<State>.allocate(capacity: 1)
    unsafe self.state.initialize(to: state)
  }

  deinit {
    unsafe state.deinitialize(count: 1)
    unsafe state.deallocate()
  }

  /// Calls `body` with exclusive access to the value.
  func withLock<Result>(_ body: (inout State) -> Result) -> Result {
    mutex.lock()
    defer { mutex.unlock() }
    return unsafe body(&state.pointee)
  }

  /// Calls `step` until it has a result; in between it waits for a signal or the given time.
  ///
  /// Without a time it only waits for a signal.
  func wait<Result>(_ step: (inout State) -> WaitStep<Result>) -> Result {
    mutex.lock()
    defer { mutex.unlock() }
    while true {
      switch unsafe step(&state.pointee) {
      case .done(let result): return result
      case .wait(let deadline): mutex.wait(on: condition, until: deadline)
      }
    }
  }

  func signal() { condition.signal() }

  func broadcast() { condition.broadcast() }
}

/// The result of one step of a wait.
enum WaitStep<Result> {
  case done(Result)
  /// Call the step again after a signal, or at the given time.
  case wait(until: Moment?)
}

/// A POSIX mutex with a condition that has deadlines on the monotonic clock.
// The pointers never change, and POSIX lets any thread make these calls through them.
@usableFromInline
@safe final class RawMutex: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

  @usableFromInline
  init() {
    unsafe mutex.initialize(to: pthread_mutex_t())
    let failure = unsafe pthread_mutex_init(mutex, nil)
    precondition(failure == 0, "A lock cannot be created: error \(failure).")
  }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  @usableFromInline
  func lock() { unsafe pthread_mutex_lock(mutex) }

  @usableFromInline
  func unlock() { unsafe pthread_mutex_unlock(mutex) }

  /// Unlocks the mutex until the condition is signalled or the deadline has passed.
  ///
  /// It may also return spuriously.
  func wait(on condition: RawCondition, until deadline: Moment?) {
    unsafe condition.wait(with: mutex, until: deadline)
  }
}

/// A POSIX condition variable with deadlines on the monotonic clock.
// The pointer never changes, and POSIX lets any thread make these calls through it.
@safe final class RawCondition: @unchecked Sendable {
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  init() {
    unsafe condition.initialize(to: pthread_cond_t())
    #if canImport(Darwin)
      unsafe check(pthread_cond_init(condition, nil))
    #else
      var attributes = pthread_condattr_t()
      unsafe pthread_condattr_init(&attributes)
      unsafe check(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC))
      unsafe check(pthread_cond_init(condition, &attributes))
      unsafe pthread_condattr_destroy(&attributes)
    #endif
  }

  deinit {
    unsafe pthread_cond_destroy(condition)
    unsafe condition.deallocate()
  }

  func signal() { unsafe check(pthread_cond_signal(condition)) }

  func broadcast() { unsafe check(pthread_cond_broadcast(condition)) }

  /// Waits with `mutex` released; the mutex is held again on return.
  @unsafe
  func wait(with mutex: UnsafeMutablePointer<pthread_mutex_t>, until deadline: Moment?) {
    guard let deadline else { return unsafe check(pthread_cond_wait(condition, mutex)) }
    #if canImport(Darwin)
      let now = MonotonicTime.now
      guard deadline > now else { return }
      var time = Self.time(deadline.nanoseconds - now.nanoseconds)
      let result = unsafe pthread_cond_timedwait_relative_np(condition, mutex, &time)
    #else
      var time = Self.time(deadline.nanoseconds)
      let result = unsafe pthread_cond_timedwait(condition, mutex, &time)
    #endif
    check(result == ETIMEDOUT ? 0 : result)
  }

  private static func time(_ nanoseconds: UInt64) -> timespec {
    timespec(
      tv_sec: time_t(clamping: nanoseconds / 1_000_000_000),
      tv_nsec: Int(nanoseconds % 1_000_000_000)
    )
  }

  /// The calls fail only for invalid arguments.
  private func check(_ result: Int32) {
    precondition(result == 0, "A thread primitive failed with error \(result).")
  }
}
