// Settle
// SPDX-License-Identifier: Apache-2.0

public import Synchronization

/// A reference that is set once, from any thread.
///
/// Unlike `AtomicLazyReference`, it is inlined: reading it costs a load and a retain.
@usableFromInline
@frozen
@safe struct LazyReference<Object: AnyObject & Sendable>: ~Copyable, Sendable {
  /// Owns one retain of its object.
  @usableFromInline let storage = unsafe Atomic<Unmanaged<Object>?>(nil)

  @inlinable init() {}

  @inlinable
  deinit {
    if let object = unsafe storage.load(ordering: .acquiring) { unsafe object.release() }
  }

  /// The object; `nil` until one was set.
  @inlinable var object: Object? {
    @inline(__always) get {
      unsafe storage.load(ordering: .acquiring)?.takeUnretainedValue()
    }
  }

  /// The object, which lives as long as this reference; `nil` until one was set.
  @unsafe
  @inlinable
  @inline(__always)
  var unretained: Unmanaged<Object>? { unsafe storage.load(ordering: .acquiring) }

  /// Sets the object if there is none; returns the one that is set.
  @inlinable
  func setIfNil(_ object: Object) -> Object {
    let new = unsafe Unmanaged.passRetained(object)
    let (isSet, former) = unsafe storage.compareExchange(
      expected: nil,
      desired: new,
      ordering: .acquiringAndReleasing
    )
    if isSet { return object }
    unsafe new.release()
    return unsafe former?.takeUnretainedValue() ?? object
  }
}
