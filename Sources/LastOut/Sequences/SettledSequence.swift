// Settle
// SPDX-License-Identifier: Apache-2.0

/// The elements of another sequence, of which only the last one of a burst is delivered.
///
/// Each iterator reads the other sequence on its own, from its first element on. Reading stops when
/// the iterator goes away or the consumer's task is cancelled.
public struct SettledSequence<Base: AsyncSequence & Sendable, Key: Hashable & Sendable>:
  AsyncSequence, Sendable
where Base.Element: Sendable {
  /// What the other sequence delivers.
  public typealias Element = Base.Element
  /// What the other sequence throws.
  public typealias Failure = Base.Failure

  let base: Base
  let policy: Policy
  let clock: any Clock<Duration>
  let key: @Sendable (Element) -> Key

  /// Creates an iterator, which starts to read at once.
  public func makeAsyncIterator() -> Iterator {
    Iterator(reader: SettledReader(self))
  }

  /// Delivers the elements that settled.
  public struct Iterator: AsyncIteratorProtocol {
    let reader: SettledReader<Base, Key>

    /// The next element that settled; `nil` at the end.
    public mutating func next() async throws(Failure) -> Element? {
      try await next(isolation: nil)
    }

    /// The next element that settled; `nil` at the end.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(Failure) -> Element? {
      try await reader.channel.next().get()
    }
  }
}

/// Reads a sequence into a channel until nobody holds the iterator.
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
