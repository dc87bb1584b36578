// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV

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
