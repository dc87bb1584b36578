// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
internal import Values

/// Compares tokens, and limits the answers to clients that guess.
///
/// The right token is always welcome: a client that shares its address with one that guesses is not
/// locked out.
package struct TokenGuard: Sendable {
  /// The verdict on a request.
  package enum Verdict: Hashable, Sendable {
    case welcome
    /// There is no token in a valid form.
    case missing
    case wrong
    /// Wrong, as too many were that came from there.
    case tooMany(retryAfter: Duration)
  }

  private struct Tally: Sendable {
    var allowance: Double
    var at: Moment
  }

  private let token: [UInt8]
  private var tallies: [String: Tally] = [:]
  /// How many wrong tokens one address may send at once.
  private static let burst = 10.0
  /// How many wrong tokens per second one address may send thereafter.
  private static let rate = 1.0
  private static let addressLimit = 1024

  package init(token: String) {
    self.token = Array(token.utf8)
  }

  /// The number of addresses that are remembered for a wrong token.
  package var rememberedAddresses: Int { tallies.count }

  /// Judges the `Authorization` headers of a request from `peer`.
  package mutating func judge(
    _ authorization: [String],
    from peer: String,
    at now: Moment
  ) -> Verdict {
    // A request without a token is not a guess: it costs no allowance and always gets the same
    // response.
    guard authorization.count == 1, let given = Self.bearer(authorization[0]) else {
      return .missing
    }
    if isToken(given) { return .welcome }
    var tally = tallies[peer] ?? Tally(allowance: Self.burst, at: now)
    let passed = tally.at.duration(to: now) / .seconds(1)
    tally.allowance = min(Self.burst, tally.allowance + passed * Self.rate)
    tally.at = now
    guard tally.allowance >= 1 else {
      tallies[peer] = tally  // The address is known.
      return .tooMany(retryAfter: .seconds(1))
    }
    tally.allowance -= 1
    if tallies.count >= Self.addressLimit, tallies[peer] == nil { forgetRested(at: now) }
    tallies[peer] = tally
    return .wrong
  }

  /// Compares in constant time.
  private func isToken(_ given: [UInt8]) -> Bool {
    guard !token.isEmpty else { return false }
    var difference = given.count ^ token.count
    for (position, byte) in given.enumerated() {
      difference |= Int(byte ^ token[position % token.count])
    }
    return difference == 0
  }

  private static func bearer(_ header: String) -> [UInt8]? {
    let parts = header.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
    return Array(parts[1].trimmed.utf8)
  }

  private mutating func forgetRested(at now: Moment) {
    tallies = tallies.filter { $0.value.at.duration(to: now) < .seconds(10) }
    // A flood from more addresses than that: the table is cleared instead of growing.
    if tallies.count >= Self.addressLimit { tallies = [:] }
  }
}
