// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CLinux
internal import Glibc

/// The signals that a full screen or a recording handles, as a descriptor for `poll`.
package struct SignalInbox: ~Copyable {
  /// Readable when a signal has arrived.
  package let descriptor: Int32

  /// Blocks the signals, so that none ends the program by itself.
  package init(_ numbers: [Int32] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT])
  {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    for number in numbers {
      unsafe sigaddset(&set, number)
    }
    unsafe sigprocmask(SIG_BLOCK, &set, nil)
    descriptor = unsafe signalfd(-1, &set, Int32(SFD_NONBLOCK | SFD_CLOEXEC))
  }

  deinit { close(descriptor) }

  /// Removes the signals that have arrived, and returns their numbers.
  package func dequeue() -> [Int32] {
    var numbers: [Int32] = []
    var info = signalfd_siginfo()
    let size = MemoryLayout<signalfd_siginfo>.size
    while unsafe read(descriptor, &info, size) == size {
      numbers.append(Int32(bitPattern: info.ssi_signo))
    }
    return numbers
  }
}
