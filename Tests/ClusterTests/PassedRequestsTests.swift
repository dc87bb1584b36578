// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import Cluster

/// Where requests go that a client has sent to `a`: partition 0 belongs to `b`, until it changes.
struct PassedRequestsTests {
  private struct Asked {
    var requests = PassedRequests(member: "a")
    var view = ClusterView(partitions: 1)
    var drives = false
    private(set) var released: [Partition] = []
    private var count: UInt64 = 0

    init() {
      for (incarnation, name) in ["a", "b", "c"].enumerated() {
        present(name, incarnation: UInt64(incarnation))
      }
      own("b", incarnation: 1)
    }

    mutating func present(
      _ name: String,
      incarnation: UInt64,
      state: MemberRecord.State = .ready
    ) {
      count += 1
      let record = MemberRecord(incarnation: incarnation, state: state, beat: count, digest: 1)
      _ = view.observe(.member(name), .member(record), revision: count, at: .zero)
      requests.ownersChanged()
    }

    mutating func own(_ name: String, incarnation: UInt64) {
      count += 1
      let record = OwnerRecord(member: name, incarnation: incarnation, beat: 1, epoch: count)
      _ = view.observe(.owner(Partition(0)), .owner(record), revision: count, at: .zero)
      requests.ownersChanged()
    }

    mutating func pass(about device: Int = 7, at milliseconds: Int64 = 0) -> UInt64? {
      requests.pass(
        to: .owner(Partition(0)),
        about: device,
        limit: 5,
        at: PassedRequestsTests.at(milliseconds)
      )
    }

    /// What is done with requests at a time; partitions without any are in ``released``.
    mutating func advance(to milliseconds: Int64) -> [PassedEffect] {
      requests.advance(
        to: PassedRequestsTests.at(milliseconds),
        view,
        isEngineReachable: true
      ) { _ in drives }
      return requests.dequeueEffects().filter { effect in
        guard case .released(let partition) = effect else { return true }
        released.append(partition)
        return false
      }
    }
  }

  private static func at(_ milliseconds: Int64) -> Moment {
    Moment.zero.advanced(by: .milliseconds(milliseconds))
  }

  @Test func `a request goes to the owner, and to the next one where the owner has refused it`() {
    var asked = Asked()
    #expect([asked.pass(), asked.pass()] == [1, 2])
    #expect(asked.advance(to: 0) == [.send(1, to: "b"), .send(2, to: "b")])
    asked.requests.moved(1, at: Self.at(5))
    asked.own("c", incarnation: 2)
    // Nothing goes elsewhere before the second one has its answer.
    #expect(asked.advance(to: 6) == [])
    asked.requests.undelivered([2], at: Self.at(10))
    #expect(asked.advance(to: 10) == [.send(1, to: "c"), .send(2, to: "c")])
    #expect([asked.requests.answered(1, isLast: true)] == [true])
    #expect(asked.requests.count == 1)
    // A repeated reply is nobody's.
    #expect([asked.requests.answered(1, isLast: true)] == [false])
  }

  @Test func `a partition is released when all its requests have their answers`() {
    var asked = Asked()
    #expect([asked.pass(), asked.pass()] == [1, 2])
    _ = asked.advance(to: 0)
    _ = asked.requests.answered(1, isLast: true)
    _ = asked.advance(to: 1)
    #expect(asked.released == [] && asked.requests.isBusy(Partition(0)))
    _ = asked.requests.answered(2, isLast: false)
    _ = asked.advance(to: 2)
    #expect(asked.released == [Partition(0)] && !asked.requests.isBusy(Partition(0)))
  }

  @Test(arguments: [false, true])
  func `a request is not repeated when the member that has it ends`(hasAnswered: Bool) {
    var asked = Asked()
    _ = asked.pass()
    _ = asked.advance(to: 0)
    if hasAnswered { _ = asked.requests.answered(1, isLast: false) }
    asked.present("b", incarnation: 1, state: .evicted)
    asked.own("c", incarnation: 2)
    #expect(asked.advance(to: 5) == [.fail(1, .ended(member: "b", hasAnswered: hasAnswered))])
    #expect(asked.requests.count == 0 && !asked.requests.isBusy(Partition(0)))
  }

  @Test func `a request is executed here when this member has the partition, after earlier ones`() {
    var asked = Asked()
    _ = asked.pass()
    _ = asked.advance(to: 0)
    asked.own("a", incarnation: 0)
    asked.drives = true
    #expect(asked.requests.isBusy(Partition(0)))
    _ = asked.pass()
    #expect(asked.advance(to: 5) == [])
    _ = asked.requests.answered(1, isLast: true)
    #expect(asked.advance(to: 6) == [.perform(2)])
    #expect(!asked.requests.isBusy(Partition(0)) && asked.requests.count == 0)
  }

  @Test(arguments: [(7, true), (7, false), (8, true)])
  func `a request that was refused does not go behind a later one of its device`(
    later: Int,
    isAnswered: Bool
  ) {
    var asked = Asked()
    _ = asked.pass(about: 7)
    _ = asked.pass(about: later)
    _ = asked.advance(to: 0)
    // The owner began to drive the device in between.
    asked.requests.moved(1, at: Self.at(5))
    #expect(asked.advance(to: 50) == [])
    var effects: [PassedEffect] = []
    if isAnswered {
      _ = asked.requests.answered(2, isLast: true)
    } else {
      // It may have executed the later one.
      asked.present("b", incarnation: 9)
      asked.own("b", incarnation: 9)
      effects.append(.fail(2, .ended(member: "b", hasAnswered: false)))
    }
    effects.append(later == 7 ? .fail(1, .overtaken) : .send(1, to: "b"))
    #expect(asked.advance(to: 51) == effects)
  }

  @Test func `a request without an owner, and one without an answer, are given up after 8 s`() {
    var asked = Asked()
    _ = asked.pass()
    _ = asked.advance(to: 0)
    asked.own("a", incarnation: 0)  // It does not drive the partition yet.
    _ = asked.pass(at: 10)
    #expect(asked.advance(to: 7999) == [])
    #expect(asked.requests.nextDeadline == Self.at(8000))
    #expect(asked.advance(to: 8000) == [.fail(1, .silent)])
    #expect(asked.advance(to: 8009) == [])
    #expect(asked.advance(to: 8010) == [.fail(2, .noOwner)])
    #expect(!asked.requests.isBusy(Partition(0)))
  }

  @Test func `no more requests wait than the limit says`() {
    var asked = Asked()
    #expect((0..<6).map { _ in asked.pass() } == [1, 2, 3, 4, 5, nil])
  }
}
