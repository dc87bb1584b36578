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
  func routes(
    _ announcements: [Announcement],
    inner: String,
    prefix: String,
    _ reader: AnnouncementReader,
    _ overrides: ConfigurationLoader.Overrides,
    _ environment: [String: String]
  ) throws(ConfigurationFailure) -> ExitCode {
    let suffix = "/bridge/devices"
    let bases = announcements.map(\.topic).filter { $0.hasSuffix(suffix) }
      .map { String($0.dropLast(suffix.count)) }.filter { $0 != inner }
    guard let found = base ?? bases.first, bases.contains(found) else {
      complain("no Zigbee2MQTT is announced at \(base ?? "any base topic")")
      return .unavailable
    }
    guard base != nil || Set(bases).count == 1 else {
      let list = Set(bases).sorted().joined(separator: ", ")
      complain("several Zigbee2MQTT instances are announced (\(list)); choose one with --base")
      return .usage
    }
    guard let routes = InBetween(announcements, base: found, inner: inner, prefix: prefix) else {
      complain("\(found)/bridge/devices cannot be read, or names no device")
      return .badInput
    }
    let report = ImportReport(json: json, isDry: isDry)
    guard let path = settingsPath(environment) else {
      StandardOutput.show(routes.section)
      report.advise(routes.advice)
      return .done
    }
    guard let old = settings(at: path) else { return .failed }
    let (new, count) = try routes.added(to: old, file: path)
    guard try replace(old, by: new, at: path, overrides, environment) else { return .failed }
    report.showRoutes(path, old: old, new: new, count: count)
    let progress = InBetweenProgress(inner: inner, prefix: prefix)
    guard count == 0, progress.hasMoved(announcements) else {
      report.advise(routes.advice)
      return .done
    }
    do throws(AnnouncementReader.Failure) {
      report.advise(progress.text(announcements + (try reader.read(progress.filters))))
      return .done
    } catch {
      complain(error.reason)
      return error.code
    }
  }

  /// The settings file that routes are added to; `nil` if there is none.
  private func settingsPath(_ environment: [String: String]) -> String? {
    if let path = config ?? environment["SETTLE_CONFIG"], !path.isEmpty { return path }
    let standard = ConfigurationLoader.standardPath
    return unsafe access(standard, R_OK) == 0 ? standard : nil
  }

  /// The bytes of the settings; `nil` after a complaint where they cannot be read.
  private func settings(at path: String) -> [UInt8]? {
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
    _ = try ConfigurationLoader.load(drafted, environment: environment, drafts: [path: new])
    do throws(FileError) {
      if !isDry, new != old { try AtomicFile.write(new, to: path) }
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
    inner: String,
    _ settings: GatewayConfiguration,
    _ overrides: ConfigurationLoader.Overrides,
    _ environment: [String: String]
  ) throws(ConfigurationFailure) -> ExitCode {
    let undo = InBetweenUndo(inner: inner)
    let report = ImportReport(json: json, isDry: isDry)
    guard let path = settingsPath(environment) else {
      return removeLeftovers(of: undo, settings, report)
    }
    guard let old = self.settings(at: path) else { return .failed }
    guard let found = try undo.removed(from: old, file: path) else {
      return removeLeftovers(of: undo, settings, report)
    }
    guard try replace(old, by: found.bytes, at: path, overrides, environment) else {
      return .failed
    }
    report.showRoutes(path, old: old, new: found.bytes, count: -found.removed)
    report.advise(undo.advice(base: found.base))
    return .done
  }

  private func removeLeftovers(
    of undo: InBetweenUndo,
    _ settings: GatewayConfiguration,
    _ report: ImportReport
  ) -> ExitCode {
    let reader = AnnouncementReader(settings, clientID: "settle-import", timeout: timeout)
    do throws(AnnouncementReader.Failure) {
      let left = try reader.read(undo.filters).filter { !$0.payload.isEmpty }
      if let problem = undo.problem(left) {
        complain(problem)
        return .unavailable
      }
      let topics = Set(left.map(\.topic)).sorted()
      if !isDry, !topics.isEmpty {
        let prefix = prefix ?? settings.discovery?.prefix ?? "homeassistant"
        try reader.remove(topics, probe: undo.probe(prefix: prefix, process: getpid()))
      }
      report.showRemoved(topics)
      return .done
    } catch {
      complain(error.reason)
      return error.code
    }
  }
}
