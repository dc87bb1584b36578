// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// The addresses of the brokers of a connection, of which each attempt tries one; a round tries
/// all, then the client waits.
struct AddressRound: Hashable, Sendable {
  /// What an attempt connects to.
  struct Target: Hashable, Sendable {
    var endpoint: BrokerEndpoint
    /// The address in numbers, or the path of a socket; empty until the name is resolved.
    var address = ""
    /// Whether it is tried with MQTT 3.1.1 because it did not understand MQTT 5.
    var isOlder = false
  }

  /// Those that this round has not tried.
  private(set) var untried: [Target] = []
  /// That of the latest connection, with which each round begins.
  private var proven: Target?
  private var problems: [ConnectionProblem] = []

  /// Begins a round, unless one has targets left.
  mutating func begin(_ endpoints: [BrokerEndpoint]) {
    guard untried.isEmpty else { return }
    let first = endpoints.filter { $0 == proven?.endpoint }
    let others = endpoints.filter { $0 != proven?.endpoint }
    untried = (first + others).map { Target(endpoint: $0) }
  }

  /// The target of the next attempt; `resolve` finds the addresses of a name.
  mutating func next(
    _ resolve: (_ host: String) throws(UnresolvedName) -> [String]
  ) throws(UnresolvedName) -> Target {
    var target = untried.removeFirst()
    guard target.address.isEmpty else { return target }
    switch target.endpoint {
    case .unix(let path): target.address = path
    case .tcp(let host, _), .tls(let host, _):
      var addresses = try resolve(host)
      if let proven, proven.endpoint == target.endpoint,
        let index = addresses.firstIndex(of: proven.address)
      {
        addresses.insert(addresses.remove(at: index), at: 0)
      }
      guard let first = addresses.first else {
        throw UnresolvedName(reason: "the name has no address")
      }
      target.address = first
      let others = addresses.dropFirst().map { Target(endpoint: target.endpoint, address: $0) }
      untried.insert(contentsOf: others, at: 0)
    }
    return target
  }

  /// Tries a target once more, next, with MQTT 3.1.1.
  mutating func retryOlder(_ target: Target) {
    var target = target
    target.isOlder = true
    untried.insert(target, at: 0)
  }

  /// Records a connection, which ends the round.
  mutating func connected(to target: Target) {
    self = AddressRound()
    proven = target
  }

  /// Records a failed attempt.
  ///
  /// - Returns: The problem to report when the round is over; `nil` if a target is left.
  mutating func failed(_ problem: ConnectionProblem) -> ConnectionProblem? {
    problems.append(problem)
    return untried.isEmpty ? over() : nil
  }

  /// Records that nothing can be tried now, so that the next failure ends the round.
  mutating func skipRest() { untried.removeAll() }

  /// Records that the attempt that was begun last has not come to an end.
  mutating func abandon(_ problem: ConnectionProblem) -> ConnectionProblem? {
    if !untried.isEmpty { untried.removeFirst() }
    return failed(problem)
  }

  /// The problem that says most: what answered says more than what did not.
  ///
  /// The next round waits for the operator only if every target does.
  private mutating func over() -> ConnectionProblem {
    defer { problems = [] }
    let last = problems[problems.count - 1]
    let mute: Set<ConnectionTrouble> = [.unreachable, .unresolved, .silent]
    guard let telling = problems.last(where: { !mute.contains($0.trouble) }) else { return last }
    if !telling.callsForSlowRetry || problems.allSatisfy(\.callsForSlowRetry) { return telling }
    return ConnectionProblem(.unavailable, telling.reason, telling.trouble)
  }
}

/// Finds the addresses of a host.
package enum HostAddresses {
  /// All addresses of `host` in numbers, in the system's order; blocks.
  package static func resolve(_ host: String) throws(UnresolvedName) -> [String] {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var first: UnsafeMutablePointer<addrinfo>?
    let code = unsafe getaddrinfo(host, nil, &hints, &first)
    guard code == 0 else {
      throw UnresolvedName(reason: unsafe String(cString: gai_strerror(code)))
    }
    defer { unsafe freeaddrinfo(first) }
    var addresses: [String] = []
    var next = unsafe first
    while let entry = unsafe next?.pointee {
      unsafe next = entry.ai_next
      var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      guard
        unsafe getnameinfo(
          entry.ai_addr,
          entry.ai_addrlen,
          &text,
          socklen_t(text.count),
          nil,
          0,
          NI_NUMERICHOST
        ) == 0
      else { continue }
      let end = text.firstIndex(of: 0) ?? text.endIndex
      let address = String(decoding: text[..<end].map(UInt8.init(bitPattern:)), as: UTF8.self)
      if !addresses.contains(address) { addresses.append(address) }
    }
    return addresses
  }
}

/// A host's name that has no address, with the resolver's reason.
package struct UnresolvedName: Error, Hashable, Sendable {
  package let reason: String
  package init(reason: String) { self.reason = reason }
}
