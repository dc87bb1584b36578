// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import GatewayCore
import Glibc
import JSON
import Journal
import LastOut
import Operations

/// What devices reported over the last hours, in a file beside the journal's: it outlives the
/// process.
///
/// The file is written at the end, and every quarter of an hour on a thread of its own. A process
/// that is killed loses what came after that.
final class HistoryFile {
  private static let interval = Duration.seconds(900)
  /// How often it is tried to tell how old the file of an earlier boot is.
  private static let patience = Duration.seconds(15)

  private let context: GatewayContext
  private let file: JournalNeighbour
  private var writing: BackgroundWork<Bool>?
  /// What an earlier process wrote, until its age and its keys are known.
  private var earlier: ReportHistory.Document?
  private var isFailing = false
  /// When it is read or written next.
  private(set) var deadline: Moment

  /// Reads the file; `journal` is the path of the journal's.
  ///
  /// - Throws: When the loop cannot be woken from another thread.
  init(besideJournal journal: String, _ context: GatewayContext) throws(OperationsError) {
    self.context = context
    file = JournalNeighbour("history.json", besideJournal: journal)
    deadline = EventLoop.now().advanced(by: Self.interval)
    writing = try BackgroundWork(named: "history", loop: context.loop) { [weak self] in
      self?.finish($0)
    }
    guard let bytes = file.read() else { return }
    earlier = (try? JSONParser.parse(bytes.span)).flatMap { ReportHistory.Document($0) }
    guard earlier != nil else {
      context.log.warning("The history is damaged and set aside", ["as": file.setAside()])
      return
    }
    restore()
  }

  /// Takes over what an earlier process wrote, as far as its age and its keys are known; call it
  /// when there are other devices.
  func restore() {
    guard let document = earlier else { return }
    let clock = SystemClock.read()
    if let age = document.age(clock) {
      earlier = context.core.restoreHistory(document, age: age, at: clock.moment)
    } else {
      deadline = min(deadline, clock.moment.advanced(by: Self.patience))
    }
  }

  /// Begins to write the file if it is time.
  func advance(to now: Moment) {
    guard deadline <= now else { return }
    deadline = now.advanced(by: Self.interval)
    restore()
    // Once its age is known, what an earlier process wrote is written again.
    guard let writing, !writing.isRunning, earlier?.age(SystemClock.read()) != nil || earlier == nil
    else { return }
    let (file, history, registry, unknown) = (
      file, context.core.reportHistory, context.registry, earlier
    )
    // Without a thread the next time is soon enough.
    try? writing.begin {
      file.write(history.document(of: registry, SystemClock.read(), keeping: unknown))
    }
  }

  /// Writes the file at the end.
  ///
  /// Where the age of what an earlier process wrote is not known yet, this one's takes its place.
  func close() {
    guard writing?.isRunning != true else { return }
    let history = context.core.reportHistory
    let clock = SystemClock.read()
    finish(file.write(history.document(of: context.registry, clock, keeping: earlier)))
  }

  private func finish(_ isWritten: Bool) {
    if !isWritten, !isFailing {
      context.log.warning("The history cannot be written", ["path": file.path])
    }
    isFailing = !isWritten
  }
}

/// A small file beside the journal's, written as a whole.
struct JournalNeighbour: Sendable {
  let path: String

  /// `journal` is the path of the journal's file.
  init(_ name: String, besideJournal journal: String) {
    let folders = journal.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    path = (folders + [name[...]]).joined(separator: "/")
  }

  /// What the file has; `nil` without one.
  func read() -> [UInt8]? { TextFile.read(path).map { Array($0.utf8) } }

  /// Replaces the file; `false` if it cannot be written, and then it is as before.
  func write(_ bytes: [UInt8]) -> Bool {
    let draft = path + ".new"
    let text = String(decoding: bytes, as: UTF8.self)
    guard (try? TextFile.write(text, to: draft, isSynced: true)) != nil else { return false }
    return unsafe rename(draft, path) == 0
  }

  /// Gives a damaged file another name.
  ///
  /// - Returns: The new path.
  func setAside() -> String {
    let aside = "\(path).damaged"
    unsafe rename(path, aside)
    return aside
  }
}
