// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import LastOut
package import Operations

/// The processes that work for one test, and whether a wait of it has run out.
///
/// After that the test has failed: it waits for nothing more, and so comes to its end at once. The
/// trait ``BlockingTrait`` gives each test its own.
package final class Patience: Sendable {
  private struct State {
    var isUsedUp = false
    var processes: Set<Int32> = []
  }

  @TaskLocal package static var current: Patience?

  /// Waits of this length or more are for events that must come.
  let length: Duration
  private let state = Locked(State())

  package init(_ length: Duration = .patience) { self.length = length }

  /// The work of a process counts as progress from now on.
  package static func follow(_ process: Int32) {
    current?.state.withLock { _ = $0.processes.insert(process) }
  }

  var isUsedUp: Bool { state.withLock { $0.isUsedUp } }

  func useUp() { state.withLock { $0.isUsedUp = true } }

  /// How long the processes have run so far, or waited for a processor that others had, in
  /// hundredths of a second.
  func processorTicks() -> Int {
    state.withLock { $0.processes }.reduce(0) {
      $0 + ProcessorTime.ticks(of: $1) + ProcessorTime.waited(for: $1)
    }
  }
}

/// One wait of a test: over when nothing has progressed for a while.
///
/// Progress is what the owner counts, such as messages or bytes, and the time that the test's
/// processes run or wait for a processor. A wait shorter than the test's patience looks at the clock
/// alone.
package struct Wait {
  private let limit: Duration
  private let patience: Patience?
  private let isPatient: Bool
  /// However much progress there is, such as that of a process that hangs in a loop.
  private let latestEnd: Moment
  private var end: Moment
  private var progress = 0
  /// The processor time at the last look at it; `nil` before the first.
  private var ticks: Int?

  package init(within limit: Duration = .patience) {
    self.limit = limit
    patience = Patience.current
    isPatient = limit >= patience?.length ?? .patience
    let now = EventLoop.now()
    end = now.advanced(by: limit)
    latestEnd = now.advanced(by: limit * 30)
  }

  /// How long to wait until the next look, at most a second; `nil` when the wait is over.
  package mutating func remaining(_ progress: Int = 0) -> Duration? {
    if patience?.isUsedUp == true { return nil }
    if isPatient, ticks == nil { ticks = patience?.processorTicks() }
    let now = EventLoop.now()
    if isPatient, progress != self.progress || now >= end && processesHaveWorked() {
      self.progress = progress
      end = min(now.advanced(by: limit), latestEnd)
    }
    guard now < end else {
      if isPatient { patience?.useUp() }
      return nil
    }
    return min(now.duration(to: end), .seconds(1))
  }

  /// Whether they have run, or wanted to, for more than a sixtieth of the time since the last look.
  private mutating func processesHaveWorked() -> Bool {
    guard let patience, let before = ticks else { return false }
    let after = patience.processorTicks()
    ticks = after
    return (after - before) * 60 > Int(limit / .milliseconds(10))
  }
}

extension Wait {
  /// Waits until a descriptor has input, or is at its end; `false` if that does not come in time.
  package static func forInput(of descriptor: Int32, within limit: Duration = .patience) -> Bool {
    var wait = Wait(within: limit)
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while unsafe poll(&request, 1, 0) <= 0 {
      guard let left = wait.remaining() else { return false }
      _ = unsafe poll(&request, 1, Int32(left / .milliseconds(1)) + 1)
    }
    return true
  }
}

/// The processor time of other processes, as the kernel counts it.
package enum ProcessorTime {
  /// That of a process and its children that have ended, in hundredths of a second; 0 without it.
  package static func ticks(of process: Int32) -> Int {
    let text = TextFile.read("/proc/\(process)/stat") ?? ""
    let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
    return fields.dropFirst(11).prefix(4).reduce(0) { $0 + (Int($1) ?? 0) }
  }

  /// How long the first thread of a process was ready and had no processor, in hundredths of a
  /// second; 0 without it, or where the kernel does not count this.
  package static func waited(for process: Int32) -> Int {
    let fields = (TextFile.read("/proc/\(process)/schedstat") ?? "").split(separator: " ")
    return fields.count > 1 ? (Int(fields[1]) ?? 0) / 10_000_000 : 0
  }
}

extension SpawnedProcess {
  /// Waits for the end, as long as the process works; `nil` if it does not come.
  @discardableResult
  package func wait(within limit: Duration = .patience) -> Ending? {
    Patience.follow(processID)
    var wait = Wait(within: limit)
    while true {
      if let ending { return ending }
      guard let left = wait.remaining() else { return self.wait(milliseconds: 0) }
      self.wait(milliseconds: Int32(left / .milliseconds(1)) + 1)
    }
  }
}
