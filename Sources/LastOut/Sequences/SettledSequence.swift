// Settle
// SPDX-License-Identifier: Apache-2.0

/// A sequence that delivers only the last element of each burst of another sequence.
///
/// Each iterator reads the base sequence from its first element. Reading stops when the iterator is
/// released or the consumer's task is cancelled.
public struct SettledSequence<Base: AsyncSequence & Sendable, Key: Hashable & Sendable>:
  AsyncSequence, Sendable
where Base.Element: Sendable {
  /// The element of the base sequence.
  public typealias Element = Base.Element
  /// The error of the base sequence.
  public typealias Failure = Base.Failure

  let base: Base
  let policy: Policy
  let clock: any Clock<Duration>
  let key: @Sendable (Element) -> Key

  /// Creates an iterator, which starts reading at once.
  public func makeAsyncIterator() -> Iterator {
    Iterator(reader: SettledReader(self))
  }

  /// Delivers the settled elements.
  public struct Iterator: AsyncIteratorProtocol {
    let reader: SettledReader<Base, Key>

    /// The next settled element; `nil` at the end.
    public mutating func next() async throws(Failure) -> Element? {
      try await next(isolation: nil)
    }

    /// The next settled element; `nil` at the end.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(Failure) -> Element? {
      try await reader.channel.next().get()
    }
  }
}

/// Reads a sequence into a channel until the iterator is released.
final class SettledReader<Base: AsyncSequence & Sendable, Key: Hashable & Sendable>: Sendable
where Base.Element: Sendable {
  let channel: SettledChannel<Key, Base.Element, Base.Failure>
  private let task: Task<Void, Never>

  init(_ sequence: SettledSequence<Base, Key>) {
    let channel = SettledChannel<Key, Base.Element, Base.Failure>(
      policy: sequence.policy,
      clock: sequence.clock
    )
    self.channel = channel
    task = Task.detached { await Self.read(sequence, into: channel) }
  }

  deinit {
    task.cancel()
    channel.cancel()
  }

  private static func read(
    _ sequence: SettledSequence<Base, Key>,
    into channel: SettledChannel<Key, Base.Element, Base.Failure>
  ) async {
    var iterator = sequence.base.makeAsyncIterator()
    do throws(Base.Failure) {
      while let element = try await iterator.next(isolation: nil) {
        channel.send(element, forKey: sequence.key(element))
      }
      channel.finish(nil)
    } catch {
      channel.finish(error)
    }
  }
}
