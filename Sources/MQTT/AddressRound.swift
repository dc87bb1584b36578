// Settle
// SPDX-License-Identifier: Apache-2.0

/// The addresses of a broker, of which each attempt tries one; a round tries all, then the client
/// waits.
struct AddressRound: Hashable, Sendable {
  /// Those that this round has not tried; empty until they are known.
  private(set) var untried: [String] = []
  /// The address of the latest connection, with which each round begins.
  private var proven: String?
  private var problems: [ConnectionProblem] = []

  /// The address of the next attempt; `find` is asked at the start of a round.
  mutating func next<Failure: Error>(
    _ find: () throws(Failure) -> [String]
  ) throws(Failure) -> String? {
    if untried.isEmpty {
      untried = try find()
      if let proven, let index = untried.firstIndex(of: proven) {
        untried.insert(untried.remove(at: index), at: 0)
      }
    }
    return untried.isEmpty ? nil : untried.removeFirst()
  }

  /// Records a connection, which ends the round.
  mutating func connected(to address: String) {
    self = AddressRound()
    proven = address
  }

  /// Records a failed attempt.
  ///
  /// - Returns: The problem to report when the round is over; `nil` if an address is left.
  mutating func failed(_ problem: ConnectionProblem) -> ConnectionProblem? {
    problems.append(problem)
    return untried.isEmpty ? over() : nil
  }

  /// Ends the round because of `problem`, with no look at the addresses that are left.
  mutating func abandon(_ problem: ConnectionProblem) -> ConnectionProblem {
    problems.append(problem)
    return over()
  }

  /// The problem that says most: what answered says more than what did not.
  ///
  /// The next round waits for the operator only if every address does.
  private mutating func over() -> ConnectionProblem {
    defer {
      untried = []
      problems = []
    }
    let last = problems[problems.count - 1]
    let mute: Set<ConnectionTrouble> = [.unreachable, .unresolved, .silent]
    guard let telling = problems.last(where: { !mute.contains($0.trouble) }) else { return last }
    if !telling.callsForSlowRetry || problems.allSatisfy(\.callsForSlowRetry) { return telling }
    return ConnectionProblem(.unavailable, telling.reason, telling.trouble)
  }
}
