// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import Devices
import GatewayCore
import Import
import LastOut
import Operations
import Values

/// Imports what is announced while the gateway runs, and reloads.
///
/// ``AnnouncementFollower`` decides when. The import itself reads, compares and writes files on a
/// thread of its own; the event loop hands it what is announced, and receives what became of it.
final class GatewayImport {
  private let context: GatewayContext
  private let reloads: GatewayReload
  private let importer: DeviceImport
  private var follower: AnnouncementFollower
  private var work: BackgroundWork<DeviceImport.Outcome>?
  /// How many reloads had ended when the import that runs began.
  private var startedAfter = 0
  /// Whether files were written that the gateway has not read.
  private var isUnread = false
  /// Whether the reload in progress was asked for here.
  private var isReloading = false
  /// Why that is so, or nothing is written, as the log has it.
  private var obstacle: DeviceImport.Obstacle?
  /// What the newest import refused, so that the log has each once.
  private var refused: Set<ImportDiagnostic> = []
  private var isFullLogged = false
  private var last = StatusReport.Import()
  private var endedAt: Moment?
  /// The groups that were announced when the newest import began.
  private var bridgeGroups: [BridgeGroup] = []

  /// How many refusals are shown.
  private static let shownRefusals = 20
  /// How many of the devices that were added are named.
  private static let namedDevices = 100

  /// `nil` where the settings have no import.
  ///
  /// - Throws: When the loop cannot be woken from another thread.
  init?(
    _ context: GatewayContext,
    reloads: GatewayReload,
    importer: DeviceImport
  ) throws(OperationsError) {
    guard let settings = context.configuration.importing,
      let request = DeviceImport.request(context.configuration)
    else { return nil }
    self.context = context
    self.reloads = reloads
    self.importer = importer
    follower = AnnouncementFollower(settings, request: request)
    work = try BackgroundWork(named: "import", loop: context.loop) { [weak self] in
      self?.finish($0)
    }
  }

  /// When an import is due; `nil` while nothing is new, or a reload is in progress.
  var deadline: Moment? { isBlocked ? nil : follower.deadline }

  private var isBlocked: Bool { reloads.isBusy || context.core.isShuttingDown }

  /// Receives a message; `false` for one that announces nothing.
  func receive(_ topic: Span<UInt8>, _ payload: Span<UInt8>, at now: Moment) -> Bool {
    let isAnnouncement = follower.receive(topic, payload, at: now)
    if follower.isFull, !isFullLogged {
      isFullLogged = true
      last.failure = "more is announced than an import accepts"
      context.log.error("Nothing is imported", ["reason": last.failure ?? ""])
    }
    if follower.hasGroupNews { updateGroups() }
    return isAnnouncement
  }

  /// Begins an import if one is due.
  func advance(to now: Moment) {
    guard !isBlocked, let announced = follower.begin(at: now) else { return }
    startedAfter = reloads.count
    let base = DeviceImport.Base(
      settings: context.configuration,
      registry: context.registry,
      hashes: reloads.hashes
    )
    let importer = importer
    do throws(OperationsError) {
      try work?.begin { importer.run(announced, base: base) }
    } catch {
      var outcome = DeviceImport.Outcome()
      outcome.obstacle = .failed(error.description)
      finish(outcome)
    }
  }

  private func finish(_ outcome: DeviceImport.Outcome) {
    let now = EventLoop.now()
    follower.finish()
    endedAt = now
    bridgeGroups = outcome.bridgeGroups
    updateGroups()
    reloads.wrote(outcome.written)
    if !outcome.written.isEmpty { isUnread = true }
    record(outcome, at: now)
    // Files that were read meanwhile are compared again.
    if reloads.count != startedAfter || reloads.isBusy { return follower.filesChanged(at: now) }
    switch outcome.obstacle {
    case .failed: sayOnce(outcome.obstacle)
    case .changed, .mistakes: if isUnread { sayOnce(outcome.obstacle) }
    case nil:
      sayOnce(nil)
      if isUnread { reload() }
    }
  }

  private func reload() {
    isReloading = true
    reloads.reload { [weak self] result in
      self?.isReloading = false
      // The log has the reason.
      if case .failure(let refusal) = result { self?.last.unused = refusal.error.message }
    }
  }

  // MARK: - Groups

  /// The connection to the broker ended: groups may change before they are announced again.
  func connectionEnded() { follower.connectionEnded() }

  /// Tells the core which groups the bridge has with the same members, as far as it has announced
  /// them in this connection.
  func updateGroups() {
    follower.hasGroupNews = false
    let announced = bridgeGroups.filter { follower.isKnown(group: $0.topic) }
    context.core.setBridgeGroups(Set(announced.compactMap { device(of: $0) }))
  }

  /// The number of a group's device, if it has the same members and topics here.
  private func device(of group: BridgeGroup) -> Int? {
    guard let device = device(group.id, below: group.topic),
      let members = context.registry.devices[device].group?.members,
      Set(members) == Set(group.members.keys),
      group.members.allSatisfy({ self.device($0, below: $1) != nil })
    else { return nil }
    return device
  }

  /// The number of a device, if all its commands go to topics below `base`.
  private func device(_ id: String, below base: String) -> Int? {
    let registry = context.registry
    guard let device = try? registry.deviceIndex(of: id),
      registry.indices(ofDevice: device).allSatisfy({ key in
        let topic = registry[KeyIndex(key)].commandTopic
        return topic.isEmpty || topic.hasPrefix(base + "/")
      })
    else { return nil }
    return device
  }

  /// Files were read, and count.
  func filesRead(at now: Moment) {
    if !isReloading { follower.filesChanged(at: now) }
    isReloading = false
    isUnread = false
    sayOnce(nil)
  }

  // MARK: - Reports

  private func record(_ outcome: DeviceImport.Outcome, at now: Moment) {
    last.folder = outcome.folder
    last.refused = outcome.refused.prefix(Self.shownRefusals).map {
      .init(subject: $0.subject, reason: $0.reason)
    }
    last.refusedCount = outcome.refusedCount
    last.gone = Array(outcome.gone.prefix(Self.shownRefusals))
    last.goneCount = outcome.goneCount
    logRefusals(outcome)
    if case .failed = outcome.obstacle {} else { last.devices = outcome.devices }
    guard let first = outcome.added.first else { return }
    last.added = Array(outcome.added.prefix(Self.namedDevices))
    last.addedCount = outcome.added.count
    context.synchronizeEncoder(at: now)
    last.addedAt = Int(context.encoder.wallMilliseconds(at: now))
    context.log.info(
      "Devices imported",
      [
        "count": String(outcome.added.count), "first": first, "folder": outcome.folder ?? "",
      ]
    )
  }

  private func logRefusals(_ outcome: DeviceImport.Outcome) {
    for refusal in outcome.refused where !refused.contains(refusal) {
      context.log.warning(
        "Not imported",
        ["what": refusal.subject, "reason": refusal.reason]
      )
    }
    let rest = outcome.refusedCount - outcome.refused.count
    if rest > 0, outcome.refused.contains(where: { !refused.contains($0) }) {
      context.log.warning("More was not imported", ["count": String(rest)])
    }
    refused = Set(outcome.refused)
  }

  /// Logs an obstacle unless it was the last one; `nil` if there is none any more.
  private func sayOnce(_ new: DeviceImport.Obstacle?) {
    last.unused = nil
    if !follower.isFull { last.failure = nil }
    defer { obstacle = new }
    guard let new else { return }
    let reason =
      switch new {
      case .changed(let path): "\(path) has changed since the gateway read it"
      case .mistakes(let reason), .failed(let reason): reason
      }
    if case .failed = new { last.failure = reason } else { last.unused = reason }
    guard new != obstacle else { return }
    context.log.warning(
      last.unused == nil
        ? "Nothing is imported" : "Imported devices are in the files, and count after a reload",
      ["reason": reason]
    )
  }

  /// What `status` shows.
  func report(at now: Moment) -> StatusReport.Import {
    var report = last
    report.announcements = follower.count
    report.ageMilliseconds = endedAt?.milliseconds(to: now)
    return report
  }
}
