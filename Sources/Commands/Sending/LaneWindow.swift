// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// How many commands of a lane may be in flight, learned from how fast devices confirm them.
///
/// As many commands fit into a mesh as it confirms during one round trip (Little's law). Both are
/// measured: the rate of confirmations while the lane has commands waiting, and the shortest round
/// trip of late, which is one without a queue in the mesh. The window aims at half as many again
/// and two, so that the mesh always has the next command, and never many. It opens by at most one
/// for each confirmation.
///
/// A mesh that drops commands shows it only by silence, some seconds later. Two devices that do not
/// confirm, close to each other, halve the window, and it opens no further than three quarters of
/// where that happened; one device alone says more about itself than about the mesh. A mesh that
/// says that it is busy does the same to the window, once in a round trip.
///
/// Additive increase until something is lost, as in TCP, is no choice: a loss in a mesh costs a
/// confirmation's whole patience, where one in TCP costs a round trip.
struct LaneWindow {
  /// How many confirmations the shortest round trip is remembered for, at least.
  private static let memory = 32
  /// How many confirmations after a loss make another one a new matter.
  private static let apart = 10
  /// How many confirmations without a second loss raise the ceiling by one.
  private static let trust = 20

  private var limits: LaneLimits.Window
  private var size: Double
  /// Where losses began.
  private var ceiling: Double
  /// The commands in flight that take up room.
  private(set) var inFlight = 0
  /// How many devices did not confirm a command in time.
  private(set) var lostCount = 0
  /// The moments of the latest confirmations since the lane was idle, the oldest first.
  private var confirmations: [Moment] = []
  /// The shortest round trip among the last ``memory`` ones, and among those before.
  private var shortest: Duration?
  private var shortestBefore: Duration?
  private var sinceShortest = 0
  private var sinceLoss = Self.apart
  private var sinceCut = 0
  private var lastCut = Moment.zero
  /// The round trip on average, and by how much it differs from that on average.
  private(set) var roundTrip: Duration?
  private var deviation = Duration.zero

  init(_ limits: LaneLimits.Window) {
    self.limits = limits
    size = Double(limits.start)
    ceiling = Double(limits.max)
  }

  /// The number of commands that may be in flight.
  var capacity: Int { Int(size) }

  var hasRoom: Bool { inFlight < capacity }

  /// How long a command takes up room without a sign of it; then it is presumed to have ended.
  var patience: Duration {
    let least = Duration.milliseconds(500)
    guard let roundTrip else { return least }
    return max(roundTrip + deviation * 4, least)
  }

  /// How long a command takes that nothing can confirm.
  var presumedTime: Duration { roundTrip ?? .milliseconds(250) }

  // MARK: - What happens to commands

  mutating func begin() {
    if inFlight == 0 { confirmations.removeAll(keepingCapacity: true) }
    inFlight += 1
  }

  /// A command no longer takes up room.
  mutating func end() { inFlight = max(0, inFlight - 1) }

  /// A device confirmed a command; `isFull` states whether others wait for room.
  mutating func confirm(after time: Duration, isFull: Bool, at now: Moment) {
    measure(time)
    confirmations.append(now)
    if confirmations.count > max(5, capacity + 1) { confirmations.removeFirst() }
    sinceLoss += 1
    sinceCut += 1
    if sinceCut.isMultiple(of: Self.trust) { ceiling = min(ceiling + 1, Double(limits.max)) }
    if isFull { adapt() }
  }

  /// A device did not confirm a command that was sent at `sent`.
  ///
  /// `isProof` states whether it has confirmed one before: of others it is not known whether they
  /// ever do, so their silence closes the window no further than to its start.
  mutating func lose(sent: Moment, isProof: Bool, at now: Moment) {
    lostCount += 1
    let isNearAnother = sinceLoss < Self.apart
    sinceLoss = 0
    // Commands from before the last cut were lost in the same crowd.
    if isNearAnother, sent >= lastCut { close(to: isProof ? limits.min : limits.start, at: now) }
  }

  /// The mesh has no room for commands; what it says within a round trip is about the same crowd.
  mutating func refuse(at now: Moment) {
    guard lastCut.duration(to: now) >= presumedTime else { return }
    sinceLoss = 0
    close(to: limits.min, at: now)
  }

  private mutating func close(to least: Int, at now: Moment) {
    guard size > Double(least) else { return }
    ceiling = max(Double(least), size * 3 / 4)
    size = max(Double(least), size / 2)
    sinceCut = 0
    lastCut = now
    confirmations.removeAll(keepingCapacity: true)  // Their rate includes the silence.
  }

  /// Continues with other bounds, and as much of what was learned as fits into them.
  func limited(to limits: LaneLimits.Window) -> LaneWindow {
    guard limits != self.limits else { return self }
    var window = self
    window.limits = limits
    window.ceiling = Double(limits.max)
    window.size = min(max(size, Double(limits.min)), Double(limits.max))
    return window
  }

  // MARK: - Learning

  private mutating func measure(_ time: Duration) {
    if let roundTrip {
      let difference = time > roundTrip ? time - roundTrip : roundTrip - time
      deviation = (deviation * 3 + difference) / 4
      self.roundTrip = (roundTrip * 7 + time) / 8
    } else {
      roundTrip = time
      deviation = time / 2
    }
    sinceShortest += 1
    if sinceShortest > Self.memory {
      shortestBefore = shortest
      shortest = nil
      sinceShortest = 1
    }
    shortest = min(shortest ?? time, time)
  }

  private mutating func adapt() {
    guard confirmations.count > 1, let first = confirmations.first, let last = confirmations.last,
      let shortest, first < last
    else { return }
    let roundTrip = min(shortest, shortestBefore ?? shortest)
    let share = roundTrip.nanoseconds / first.duration(to: last).nanoseconds
    let target = Double(confirmations.count - 1) * share * 1.5 + 2
    if target > size {
      size = min(target, size + 1, ceiling)
    } else if size > Double(limits.start) {
      // Where confirmations come unevenly, their rate is a poor guide to a window smaller than
      // this.
      size = max(target, size - 0.5, Double(limits.start))
    }
    size = min(max(size, Double(limits.min)), Double(limits.max))
  }
}

extension Duration {
  fileprivate var nanoseconds: Double { Double(wholeNanoseconds) }
}
