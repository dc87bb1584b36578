// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import GatewayCore
import LastOut

/// Something that a client asks one member for, whichever drives the device.
final class ClientRequest {
  enum Verb: Hashable {
    case set
    case setNow
    case stop
    case flush
    case cancel
  }

  enum State: Hashable {
    case open
    case answered
    case failed(PassedFailure)
  }

  let number: Int
  let verb: Verb
  let key: KeyIndex
  let device: Int
  /// `nil` for a group, whose members may be in several.
  let partition: Partition?
  /// The process that was asked.
  let asked: SimulatedMember
  /// Whether the client waits for the end of the command.
  let wantsPhases: Bool
  /// Of the part of a group's change that goes to another member: the change, and the value.
  let part: (change: PassedChange, value: Int)?
  /// The request that this one is a part of.
  let whole: ClientRequest?
  /// How many parts have no end.
  var openParts = 0
  fileprivate(set) var state = State.open
  fileprivate(set) var isExecuted = false
  /// Whether a reply did not arrive; a client that waits for the end has its own patience.
  var hasLostReply = false {
    didSet { whole?.hasLostReply = true }
  }

  fileprivate init(
    _ number: Int,
    _ verb: Verb,
    of key: KeyIndex,
    _ device: Int,
    _ partition: Partition?,
    at asked: SimulatedMember,
    wantsPhases: Bool,
    part: (change: PassedChange, value: Int)?,
    whole: ClientRequest?
  ) {
    self.number = number
    self.verb = verb
    self.key = key
    self.device = device
    self.partition = partition
    self.asked = asked
    self.wantsPhases = wantsPhases
    self.part = part
    self.whole = whole
  }
}

/// What clients asked for, and what became of it: each request is executed once at most, in the
/// order in which a member was asked, and has one end.
struct RequestLedger {
  /// The requests of a process about a device.
  private struct Line: Hashable {
    let life: Int
    let device: Int
  }

  private var requests: [ClientRequest] = []
  /// The newest request of each line that was executed.
  private var newest: [Line: Int] = [:]

  mutating func ask(
    _ verb: ClientRequest.Verb,
    of key: KeyIndex,
    _ device: Int,
    _ partition: Partition?,
    at member: SimulatedMember,
    wantsPhases: Bool,
    part: (change: PassedChange, value: Int)? = nil,
    whole: ClientRequest? = nil
  ) -> ClientRequest {
    let request = ClientRequest(
      requests.count,
      verb,
      of: key,
      device,
      partition,
      at: member,
      wantsPhases: wantsPhases,
      part: part,
      whole: whole
    )
    requests.append(request)
    return request
  }

  /// A member executes a request; the result is the rule that this violates.
  mutating func executed(_ request: ClientRequest) -> String? {
    if request.isExecuted { return "request \(request.number) is executed twice" }
    request.isExecuted = true
    let line = Line(life: request.asked.life, device: request.device)
    if case .failed(let failure) = request.state {
      return failure.isCertain ? "request \(request.number), which nobody has, is executed" : nil
    }
    if let newer = newest[line], newer > request.number {
      return "request \(request.number) is executed after \(newer)"
    }
    newest[line] = request.number
    return nil
  }

  /// No further reply comes; the result is the rule that this violates.
  func ended(_ request: ClientRequest, _ failure: PassedFailure?) -> String? {
    if request.state != .open { return "request \(request.number) has two ends" }
    request.state = failure.map { .failed($0) } ?? .answered
    if failure?.isCertain ?? false, request.isExecuted {
      return "request \(request.number) is executed, and said to be with nobody"
    }
    return nil
  }

  /// The requests without an end, although the process that was asked lives.
  var open: [ClientRequest] {
    requests.filter { request in
      request.state == .open && request.asked.isUp
        && !(request.wantsPhases && request.hasLostReply)
    }
  }
}

extension PassedFailure {
  /// Whether it says that nobody has executed the request, and nobody will.
  fileprivate var isCertain: Bool {
    switch self {
    case .noOwner, .overtaken: true
    case .ended, .silent: false
    }
  }
}
