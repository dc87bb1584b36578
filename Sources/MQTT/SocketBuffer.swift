// Settle
// SPDX-License-Identifier: Apache-2.0

import CSocketBuffer
import Glibc

/// What lies between the library and one socket, so that packets are read and written many at a time.
///
/// The library reads a packet with three or more system calls and writes each with one. Inside
/// ``serve(_:)`` its calls on the socket are answered from here: what has come is taken from the
/// kernel at once, and what it writes stays here until ``send()``. Never used under TLS, where
/// OpenSSL has the socket.
@safe final class SocketBuffer {
  private let pointer: UnsafeMutablePointer<settle_socket_buffer>

  /// Whether the library's calls come by here at all; not so under a sanitizer.
  static let isAvailable = settle_socket_buffer_is_available()

  /// `nil` where buffers are not to be had.
  init?(descriptor: Int32) {
    guard Self.isAvailable, let pointer = unsafe settle_socket_buffer_new(descriptor) else {
      return nil
    }
    unsafe self.pointer = pointer
  }

  deinit {
    unsafe settle_socket_buffer_free(pointer)
  }

  /// Runs one call into the library; its callbacks may use other buffers.
  static func serving<Failure: Error>(
    _ buffer: SocketBuffer?,
    _ body: () throws(Failure) -> Void
  ) throws(Failure) {
    let previous = unsafe settle_socket_buffer_enter(buffer?.pointer)
    defer { _ = unsafe settle_socket_buffer_enter(previous) }
    try body()
  }

  /// Something has come that the library has not read.
  var hasInput: Bool { unsafe pointer.pointee.input_start < pointer.pointee.input_end }

  /// How much of that there is.
  var inputBytes: Int { unsafe Int(pointer.pointee.input_end - pointer.pointee.input_start) }

  /// The kernel had nothing more when it was asked last.
  var isDrained: Bool { unsafe pointer.pointee.is_drained }

  /// The kernel may be asked again: the socket is readable.
  func beginReading() { unsafe pointer.pointee.is_drained = false }

  /// Something was written that has not left.
  var hasOutput: Bool { unsafe pointer.pointee.output_start < pointer.pointee.output_end }

  /// What has not left waits until the socket is writable.
  var isBlocked: Bool { unsafe pointer.pointee.is_blocked }

  /// Something was written that the kernel may take.
  var canSend: Bool { hasOutput && !isBlocked && failure == nil }

  /// Bytes written so far.
  var queued: UInt64 { unsafe pointer.pointee.queued }

  /// Bytes of those that the kernel has taken.
  var sent: UInt64 { unsafe pointer.pointee.sent }

  /// The error number of a send that failed; nothing leaves after it.
  var failure: Int32? {
    let code = unsafe pointer.pointee.failure
    return code == 0 ? nil : code
  }

  /// Sends what was written, as far as the kernel takes it.
  func send() { unsafe settle_socket_buffer_send(pointer) }

  /// Keeps nothing back any more: the library closes the socket right after its last packet.
  func writeThrough() { unsafe pointer.pointee.writes_through = true }

  /// The library has closed the socket; the number may be somebody else's by now.
  func letGo() { unsafe pointer.pointee.descriptor = -1 }
}
