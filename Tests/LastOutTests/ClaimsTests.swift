// Settle
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LastOut

/// The values that a flush has claimed and not started.
struct ClaimsTests {
  private func run(_ key: Int32, _ value: Int) -> LastOutCore<Int>.Run {
    LastOutCore<Int>.Run(key: KeyIndex(key), value: value, collapsed: 0, due: .zero)
  }

  @Test
  func `a claim is removed once`() {
    var claims = Claims<Int>()
    claims.add(run(7, 70))
    claims.add(run(2, 20))
    #expect(claims[KeyIndex(7)] == 70)
    #expect(claims.remove(KeyIndex(7))?.value == 70)
    #expect(claims.remove(KeyIndex(7)) == nil)
    #expect(claims[KeyIndex(7)] == nil)
    #expect(claims.all.map(\.value) == [20])
    #expect(claims.count == 1)
  }

  @Test
  func `a key that was never claimed has no claim`() {
    var claims = Claims<Int>()
    claims.add(run(3, 30))
    for key in [Int32(0), 2, 4, 100] { #expect(claims.remove(KeyIndex(key)) == nil) }
    #expect(claims.count == 1)
  }

  @Test
  func `a stale place is not taken for a claim of another key`() {
    var claims = Claims<Int>()
    claims.add(run(1, 10))
    _ = claims.remove(KeyIndex(1))
    claims.add(run(2, 20))
    #expect(claims.remove(KeyIndex(1)) == nil)
    #expect(claims.remove(KeyIndex(2))?.value == 20)
    #expect(claims.isEmpty)
  }

  @Test
  func `claims that overlap for ever need room for those that are left`() {
    var claims = Claims<Int>()
    claims.add(run(0, 0))
    for number in 1...10_000 {
      claims.add(run(Int32(number % 16), number))
      let last = Int32((number - 1) % 16)
      #expect(claims.remove(KeyIndex(last))?.value == number - 1)
    }
    #expect(claims.count == 1)
    #expect(claims.all.map(\.value) == [10_000])
    #expect(claims.runs.count < 100)
  }
}
