// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV

/// What a libuv handle's `data` leads to; told when the loop goes away under it.
protocol LoopResource: AnyObject {
  /// Forgets the handle: its memory is about to be freed.
  func detach()
}

/// Memory and closing of libuv handles, which must outlive `uv_close` until its callback.
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

  /// Closes a handle; its memory and its hold on `data` go when libuv has let go of it.
  static func close<Handle>(_ handle: UnsafeMutablePointer<Handle>) {
    unsafe uv_close(base(handle)) { handle in
      guard let handle = unsafe handle else { return }
      if unsafe handle.pointee.type != UV_PREPARE, let data = unsafe handle.pointee.data {
        unsafe Unmanaged<AnyObject>.fromOpaque(data).release()
      }
      unsafe handle.deallocate()
    }
  }

  /// Closes what is still open when a loop ends.
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
    // Every libuv handle begins with the fields of uv_handle_t.
    unsafe UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
  }
}
