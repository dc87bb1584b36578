// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV

/// The events to wait for on a descriptor, and the events that occurred.
package struct IOInterest: OptionSet, Hashable, Sendable {
  package let rawValue: Int32
  package init(rawValue: Int32) { self.rawValue = rawValue }
  package static let read = IOInterest(rawValue: 1)
  package static let write = IOInterest(rawValue: 2)
  /// The descriptor failed, which is always reported; or, if requested, the peer has closed its
  /// sending side.
  ///
  /// A peer that closed both sides is also reported as the requested events, so that the next read
  /// or write returns the error.
  package static let hangUp = IOInterest(rawValue: 4)
}

/// A watched descriptor; active until it is cancelled or its loop ends.
@safe package final class IOWatch: LoopResource {
  /// The watched events; a change has effect at once and costs up to two system calls.
  package var interest: IOInterest {
    didSet { if interest != oldValue { apply() } }
  }
  /// `nil` once cancelled.
  private var handle: UnsafeMutablePointer<uv_poll_t>?
  private var handler: ((IOInterest) -> Void)?
  private let pulse: LoopPulse
  private let phase: LoopPhase

  init(
    loop: EventLoop,
    descriptor: Int32,
    interest: IOInterest,
    phase: LoopPhase,
    handler: @escaping (IOInterest) -> Void
  ) throws(OperationsError) {
    self.interest = interest
    self.phase = phase
    pulse = loop.pulse
    self.handler = handler
    unsafe handle = nil
    unsafe handle = try LoopHandle.make(uv_poll_t.self, data: self) {
      (handle) throws(OperationsError) in
      let code = unsafe uv_poll_init(loop.pointer, handle, descriptor)
      guard code == 0 else { throw OperationsError(call: "uv_poll_init", libuv: code) }
    }
    apply()
  }

  /// Cancels the watch at once: the handler is not called again, and is released.
  package func cancel() {
    guard let handle = unsafe handle else { return }
    detach()
    unsafe LoopHandle.close(handle)
  }

  func detach() {
    unsafe handle = nil
    handler = nil
  }

  private func apply() {
    guard let handle = unsafe handle else { return }
    var events: UInt32 = 0
    if interest.contains(.read) { events |= UV_READABLE.rawValue }
    if interest.contains(.write) { events |= UV_WRITABLE.rawValue }
    if interest.contains(.hangUp) { events |= UV_DISCONNECT.rawValue }
    let code = unsafe uv_poll_start(handle, Int32(events)) { handle, status, events in
      guard let data = unsafe handle?.pointee.data else { return }
      unsafe Unmanaged<IOWatch>.fromOpaque(data).takeUnretainedValue()
        .deliver(status: status, events: UInt32(bitPattern: events))
    }
    precondition(code == 0, "A descriptor can be watched once at a time, and not after its close.")
  }

  private func deliver(status: Int32, events: UInt32) {
    guard let handler, let handle = unsafe handle else { return }
    pulse.enter(phase, batch: unsafe uv_now(handle.pointee.loop))
    var came: IOInterest = []
    if status < 0 {
      // libuv has stopped watching.
      came = .hangUp
      interest = []
    }
    if events & UV_READABLE.rawValue != 0 { came.insert(.read) }
    if events & UV_WRITABLE.rawValue != 0 { came.insert(.write) }
    if events & UV_DISCONNECT.rawValue != 0 { came.insert(.hangUp) }
    handler(came)
  }
}

/// The owner of a libuv handle's `data`; notified when the loop is destroyed.
protocol LoopResource: AnyObject {
  /// Drops the handle, whose memory is about to be freed.
  func detach()
}

/// Allocates and closes libuv handles, whose memory must outlive `uv_close` until its callback.
enum LoopHandle {
  /// Allocates a handle whose `data` retains `data`, and sets it up.
  @discardableResult
  static func make<Handle>(
    _ type: Handle.Type,
    data: (any LoopResource)?,
    _ setUp: (UnsafeMutablePointer<Handle>) throws(OperationsError) -> Void
  ) throws(OperationsError) -> UnsafeMutablePointer<Handle> {
    let handle = UnsafeMutablePointer<Handle>.allocate(capacity: 1)
    do {
      try unsafe setUp(handle)
    } catch {
      unsafe handle.deallocate()
      throw error
    }
    if let data {
      unsafe base(handle).pointee.data = Unmanaged.passRetained(data as AnyObject).toOpaque()
    }
    return unsafe handle
  }

  /// Closes a handle; its memory and `data` are released in the close callback.
  static func close<Handle>(_ handle: UnsafeMutablePointer<Handle>) {
    unsafe uv_close(base(handle)) { handle in
      guard let handle = unsafe handle else { return }
      if unsafe handle.pointee.type != UV_PREPARE, let data = unsafe handle.pointee.data {
        unsafe Unmanaged<AnyObject>.fromOpaque(data).release()
      }
      unsafe handle.deallocate()
    }
  }

  /// Closes all open handles of a loop that ends.
  static func closeAll(of loop: UnsafeMutablePointer<uv_loop_t>) {
    unsafe uv_walk(
      loop,
      { handle, _ in
        guard let handle = unsafe handle, unsafe uv_is_closing(handle) == 0 else { return }
        if unsafe handle.pointee.type != UV_PREPARE, let data = unsafe handle.pointee.data {
          let owner = unsafe Unmanaged<AnyObject>.fromOpaque(data).takeUnretainedValue()
          (owner as? any LoopResource)?.detach()
        }
        unsafe LoopHandle.close(handle)
      },
      nil
    )
  }

  private static func base<Handle>(
    _ handle: UnsafeMutablePointer<Handle>
  ) -> UnsafeMutablePointer<uv_handle_t> {
    // Every libuv handle starts with the fields of uv_handle_t.
    unsafe UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
  }
}
