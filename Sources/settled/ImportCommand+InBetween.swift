// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Glibc
import Import
import JSON
import Operations

/// Putting Settle between automations and Zigbee2MQTT, and taking it out again.
extension ImportCommand {
  private typealias Failure = AnnouncementReader.Failure

  /// Adds the routes to the settings, or says how far Zigbee2MQTT has moved.
  func addRoutes(
    _ name: String,
    _ settings: GatewayConfiguration,
    _ overrides: ConfigurationLoader.Overrides,
    _ environment: [String: String]
  ) throws(ConfigurationFailure) -> ExitCode {
    let path = settings.settingsFile
    guard let old = self.settings(at: path) else { return .failed }
    let uses = try path.map { path throws(ConfigurationFailure) in
      try InBetweenUses(in: old, file: path)
    }
    let request = request(settings)
    let reader = reader(settings)
    let progress: InBetweenProgress
    let announcements: [Announcement]
    let routes: InBetween
    do throws(Failure) {
      let inner = try chosen(uses) { uses throws(InBetweenUses.Refusal) in
        try uses.inner(named: name, base: base)
      }
      progress = InBetweenProgress(inner: inner, prefix: request.prefix)
      announcements = try announced(request, progress, reader)
      routes = try self.routes(announcements, inner: inner, prefix: request.prefix, uses)
    } catch {
      complain(error.reason)
      return error.code
    }
    let report = ImportReport(json: json, isDry: isDry)
    guard let path else {
      StandardOutput.show(routes.section)
      report.advise(routes.advice)
      return .done
    }
    let (new, count) = try routes.added(to: old, file: path)
    guard try replace(old, by: new, at: path, overrides, environment) else { return .failed }
    report.showRoutes(path, old: old, new: new, count: count, of: routes.count)
    report.show(routes.diagnostics)
    guard count == 0, progress.hasMoved(announcements) else {
      report.advise(routes.advice)
      return .done
    }
    do throws(Failure) {
      report.advise(
        progress.text(
          announcements + (try reader.read(progress.filters)),
          base: routes.base
        )
      )
      return .done
    } catch {
      complain(error.reason)
      return error.code
    }
  }

  /// The base topic that the routes in the settings lead to, or the one that is named.
  private func chosen(
    _ uses: InBetweenUses?,
    _ choice: (InBetweenUses) throws(InBetweenUses.Refusal) -> String
  ) throws(Failure) -> String {
    do throws(InBetweenUses.Refusal) {
      return try choice(uses ?? InBetweenUses())
    } catch {
      throw Failure(code: error.isAmbiguous ? .usage : .badInput, reason: error.reason)
    }
  }

  private func announced(
    _ request: ImportPlan.Request,
    _ progress: InBetweenProgress,
    _ reader: AnnouncementReader
  ) throws(Failure) -> [Announcement] {
    let found = try read(request.filters + [progress.bridgeTopic], with: reader)
    guard !found.isEmpty else { throw reader.nothing(request) }
    return found
  }

  /// The routes for the only Zigbee2MQTT, or the one that `--base` chooses.
  private func routes(
    _ announcements: [Announcement],
    inner: String,
    prefix: String,
    _ uses: InBetweenUses?
  ) throws(Failure) -> InBetween {
    let suffix = "/bridge/devices"
    let uses = uses ?? InBetweenUses()
    let bases = announcements.map(\.topic).filter { $0.hasSuffix(suffix) }
      .map { String($0.dropLast(suffix.count)) }.filter { $0 != inner && !uses.hasInner($0) }
    guard let found = base ?? bases.first, bases.contains(found) else {
      throw Failure(
        code: .unavailable,
        reason: "no Zigbee2MQTT is announced at \(base ?? "any base topic")"
      )
    }
    guard base != nil || Set(bases).count == 1 else {
      let list = Set(bases).sorted().joined(separator: ", ")
      throw Failure(
        code: .usage,
        reason: "several Zigbee2MQTT instances are announced (\(list)); choose one with --base"
      )
    }
    if let problem = uses.problem(base: found, inner: inner) {
      throw Failure(code: .badInput, reason: problem)
    }
    guard let routes = InBetween(announcements, base: found, inner: inner, prefix: prefix) else {
      throw Failure(
        code: .badInput,
        reason: "\(found)/bridge/devices cannot be read, or names no device"
      )
    }
    return routes
  }

  /// The bytes of the settings, none without a file; `nil` after a complaint where they cannot be
  /// read.
  private func settings(at path: String?) -> [UInt8]? {
    guard let path else { return [] }
    do throws(FileError) {
      return try AtomicFile.read(path) ?? []
    } catch {
      complain(error.description)
      return nil
    }
  }

  /// Writes changed settings unless it is a dry run; `false` after a complaint.
  ///
  /// - Throws: ``ConfigurationFailure`` when the new ones are invalid; nothing is written then.
  private func replace(
    _ old: [UInt8],
    by new: [UInt8],
    at path: String,
    _ overrides: ConfigurationLoader.Overrides,
    _ environment: [String: String]
  ) throws(ConfigurationFailure) -> Bool {
    var drafted = overrides
    drafted.config = path
    do throws(ConfigurationFailure) {
      _ = try ConfigurationLoader.load(drafted, environment: environment, drafts: [path: new])
    } catch {
      complain("with the routes changed, \(path) would not be valid; its lines would be:")
      throw error
    }
    do throws(FileError) {
      if !isDry, new != old { try AtomicFile.write(new, to: path, replacing: old) }
      return true
    } catch {
      complain(error.description)
      return false
    }
  }

  // MARK: - Undo

  /// Removes the routes from the settings or, where they are removed already, what is left at the
  /// broker.
  func undo(
    _ name: String,
    _ settings: GatewayConfiguration,
    _ overrides: ConfigurationLoader.Overrides,
    _ environment: [String: String]
  ) throws(ConfigurationFailure) -> ExitCode {
    let report = ImportReport(json: json, isDry: isDry)
    guard let path = settings.settingsFile else {
      let inner = name.isEmpty ? InBetween.standardInner : name
      return removeLeftovers(of: InBetweenUndo(inner: inner), settings, report)
    }
    guard let old = self.settings(at: path) else { return .failed }
    let uses = try InBetweenUses(in: old, file: path)
    let undo: InBetweenUndo
    do throws(Failure) {
      let inner = try chosen(uses) { uses throws(InBetweenUses.Refusal) in
        try uses.undone(named: name, base: base)
      }
      undo = InBetweenUndo(inner: inner)
    } catch {
      complain(error.reason)
      return error.code
    }
    guard let found = try undo.removed(from: old, file: path) else {
      return removeLeftovers(of: undo, settings, report, uses)
    }
    guard try replace(old, by: found.bytes, at: path, overrides, environment) else {
      return .failed
    }
    report.showRoutes(path, old: old, new: found.bytes, count: -found.removed, of: found.removed)
    report.advise(undo.advice(base: found.base))
    return .done
  }

  private func removeLeftovers(
    of undo: InBetweenUndo,
    _ settings: GatewayConfiguration,
    _ report: ImportReport,
    _ uses: InBetweenUses = InBetweenUses()
  ) -> ExitCode {
    let reader = reader(settings)
    do throws(Failure) {
      let prefix = prefix ?? settings.discovery?.prefix ?? "homeassistant"
      let found = try reader.read(undo.filters(prefix: prefix)).filter { !$0.payload.isEmpty }
      if let problem = undo.problem(found) {
        complain(problem)
        return .unavailable
      }
      let waiting = undo.problem(ofAnnouncements: found)
      let left = found.filter {
        undo.isLeft($0) && (waiting == nil || $0.topic.hasPrefix(undo.inner))
      }
      let topics = Set(left.map(\.topic)).sorted()
      if topics.isEmpty, let advice = uses.advice(insteadOf: undo.inner) {
        complain(advice)
        return .badInput
      }
      if !isDry, !topics.isEmpty {
        try reader.remove(topics, probe: undo.probe(prefix: prefix, process: getpid()))
      }
      report.showRemoved(topics)
      guard let waiting else { return .done }
      complain(waiting)
      return .unavailable
    } catch {
      complain(error.reason)
      return error.code
    }
  }
}
