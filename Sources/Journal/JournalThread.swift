// Settle
// SPDX-License-Identifier: Apache-2.0

package import Durability
import LastOut

/// The journal's file, and the thread that owns it: one piece of work in, one result out.
///
/// It belongs to the event loop's thread. Only the initializer waits for the disk: it reads the
/// file before the loop runs. A ``JournalPlan`` decides what is written and when.
package final class JournalThread: ValueStore {
  /// The plan, which starts with the content of the file.
  package let plan: JournalPlan
  private let writer: JournalWriter
  private let decode: ([UInt8]) -> (any JournalValue)?

  /// Opens or creates the file and starts the thread.
  ///
  /// A disk that cannot be written, or a damaged file, is not an error; ``plan`` reports it.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - settings: The pace of commits.
  ///   - vfs: SQLite's file system; `nil` for the usual one.
  ///   - clock: Reads every clock.
  ///   - decode: Reads the bytes of a value; `nil` for bytes that are none.
  ///   - onResult: Called on the writer's thread; must only wake the loop.
  /// - Throws: If the file must not be used: a newer format, another program's, a link, open to
  ///   others, or in use.
  package init(
    path: String,
    settings: JournalPlan.Settings = .init(),
    vfs: String? = nil,
    clock: @escaping @Sendable () -> JournalClock = SystemClock.read,
    decode: @escaping ([UInt8]) -> (any JournalValue)?,
    onResult: @escaping @Sendable () -> Void
  ) throws(JournalRefusal) {
    let now = clock()
    var store = JournalStore(path: path, vfs: vfs)
    do throws(JournalProblem) {
      let contents = try store.open(clock: now)
      plan = JournalPlan(settings: settings, contents: contents.decoded(by: decode))
    } catch {
      switch error {
      case .refused(let refusal): throw refusal
      case .fault(let fault): plan = JournalPlan(settings: settings, fault: fault, at: now.moment)
      }
    }
    do throws(JournalFault) {
      writer = try JournalWriter(store: store, clock: clock, onResult: onResult)
    } catch {
      throw .noThread(path: path, reason: error.description)
    }
    self.decode = decode
  }

  deinit {
    writer.beginClosing()
  }

  package func submit(_ work: JournalWork) { writer.submit(work) }

  package func dequeueResults() -> [JournalResult] {
    writer.dequeueResults().map { result in
      guard case .reopened(let contents) = result else { return result }
      return .reopened(contents.decoded(by: decode))
    }
  }

  /// Ends the thread after its current work; `onResult` is called once more, then ``isClosed``.
  package func beginClosing() { writer.beginClosing() }

  package var isClosed: Bool { writer.isClosed }
}

extension JournalContents {
  /// The same entries with their values decoded, in the order of their sequence numbers; bytes that
  /// are not a value stay bytes.
  fileprivate func decoded(by decode: ([UInt8]) -> (any JournalValue)?) -> Self {
    var contents = self
    contents.entries = entries.sorted { $0.sequence < $1.sequence }.map { entry in
      var entry = entry
      if let value = decode(entry.value) { entry.content = .unwritten(value) }
      return entry
    }
    return contents
  }
}
