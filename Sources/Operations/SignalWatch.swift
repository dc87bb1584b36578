// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV

/// Calls a handler on the loop's thread for each delivery of a signal.
final class SignalWatch: LoopResource {
  private var handler: (() -> Void)?
  private let pulse: LoopPulse
  private let phase: LoopPhase

  private init(pulse: LoopPulse, phase: LoopPhase, handler: @escaping () -> Void) {
    self.pulse = pulse
    self.phase = phase
    self.handler = handler
  }

  static func start(
    loop: EventLoop,
    number: Int32,
    handler: @escaping () -> Void
  ) throws(OperationsError) {
    let watch = SignalWatch(
      pulse: loop.pulse,
      phase: loop.pulse.phase("signal \(number)"),
      handler: handler
    )
    let handle = try unsafe LoopHandle.make(uv_signal_t.self, data: watch) {
      (handle) throws(OperationsError) in
      let code = unsafe uv_signal_init(loop.pointer, handle)
      guard code == 0 else { throw OperationsError(call: "uv_signal_init", libuv: code) }
    }
    let code = unsafe uv_signal_start(
      handle,
      { handle, _ in
        guard let handle = unsafe handle, let data = unsafe handle.pointee.data else { return }
        unsafe Unmanaged<SignalWatch>.fromOpaque(data).takeUnretainedValue()
          .deliver(batch: uv_now(handle.pointee.loop))
      },
      number
    )
    guard code == 0 else {
      unsafe LoopHandle.close(handle)
      throw OperationsError(call: "uv_signal_start", libuv: code)
    }
  }

  private func deliver(batch start: UInt64) {
    pulse.enter(phase, batch: start)
    handler?()
  }

  func detach() {
    handler = nil
  }
}
