// Settle
// SPDX-License-Identifier: Apache-2.0

import CNATS
import Operations
import Synchronization

/// What threads of libnats have reported and the event loop has not handled.
final class NATSInbox: Sendable {
  enum Event: Sendable {
    case opened(NATSHandle)
    case failed(String)
    case connected
    case disconnected(String)
    case message(NATSConnection.Message)
  }

  private struct State: Sendable {
    var events: [Event] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  private let waker: Waker

  init(_ waker: Waker) { self.waker = waker }

  /// Adds an event; `false` when nobody wants it any more.
  @discardableResult
  func add(_ event: Event) -> Bool {
    let isOpen = state.withLock { state in
      if !state.isClosed { state.events.append(event) }
      return !state.isClosed
    }
    if isOpen { waker.wake() }
    return isOpen
  }

  /// Removes and returns what has arrived, in order.
  func dequeue() -> [Event] {
    state.withLock { state in
      var taken: [Event] = []
      swap(&taken, &state.events)
      return taken
    }
  }

  /// Takes no more events, and returns those that were not handled.
  func close() -> [Event] {
    state.withLock { state in state.isClosed = true }
    return dequeue()
  }

  /// The functions that libnats calls; they hold this inbox until ``releaseFromLibrary()``.
  var handlers: settle_nats_handlers {
    unsafe settle_nats_handlers(
      owner: Unmanaged.passRetained(self).toOpaque(),
      connected: { owner in unsafe NATSInbox.of(owner).add(.connected) },
      disconnected: { owner, reason in
        let text = unsafe String(cString: reason)
        unsafe NATSInbox.of(owner).add(.disconnected(text))
      },
      message: { owner, subject, reply, status, last, data, size in
        var message = NATSConnection.Message(
          subject: unsafe String(cString: subject),
          bytes: unsafe Array(UnsafeRawBufferPointer(start: data, count: Int(size)))
        )
        if let reply = unsafe reply { message.reply = unsafe String(cString: reply) }
        if let status = unsafe status { message.status = unsafe String(cString: status) }
        if let last = unsafe last { message.lastConsumer = unsafe UInt64(String(cString: last)) }
        unsafe NATSInbox.of(owner).add(.message(message))
      }
    )
  }

  /// The connection is closed: libnats calls nothing any more.
  func releaseFromLibrary() { unsafe Unmanaged.passUnretained(self).release() }

  private static func of(_ owner: UnsafeMutableRawPointer) -> NATSInbox {
    unsafe Unmanaged<NATSInbox>.fromOpaque(owner).takeUnretainedValue()
  }
}

/// A connection of libnats.
///
/// `@unchecked`: any thread may use it, and it has one owner at a time.
@safe struct NATSHandle: @unchecked Sendable {
  private let pointer: OpaquePointer

  init(_ pointer: OpaquePointer) { unsafe self.pointer = pointer }

  func subscribe(to subject: String) -> Bool { unsafe settle_nats_subscribe(pointer, subject) }

  func publish(
    _ bytes: [UInt8],
    to subject: String,
    reply: String?,
    condition: NATSConnection.Condition?
  ) -> Bool {
    unsafe settle_nats_publish(
      pointer,
      subject,
      reply,
      (condition?.lastSequence).map(String.init),
      condition?.id,
      bytes,
      Int32(bytes.count)
    )
  }

  /// The largest payload of a message, in bytes.
  var largest: Int { unsafe Int(settle_nats_largest(pointer)) }

  /// The server's address; empty without a connection.
  var server: String {
    var text = [CChar](repeating: 0, count: 256)
    unsafe settle_nats_server(pointer, &text, Int32(text.count))
    return String(terminated: text)
  }

  /// Closes and frees it; waits for handlers that run.
  func close() { unsafe settle_nats_close(pointer) }
}
