// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Devices

/// An import into the files of a running gateway: what `settle import` does, without asking.
package struct DeviceImport: Sendable {
  /// What the gateway has in use.
  package struct Base: Sendable {
    package var settings: GatewayConfiguration
    package var registry: Registry
    /// The hash of each file as the gateway has read or written it, by path.
    package var hashes: [String: Int]

    package init(settings: GatewayConfiguration, registry: Registry, hashes: [String: Int]) {
      self.settings = settings
      self.registry = registry
      self.hashes = hashes
    }
  }

  /// Why the gateway does not read what was written, or why nothing was.
  package enum Obstacle: Hashable, Sendable {
    /// People have changed files since the gateway read them; the first of them.
    case changed(String)
    /// Files have mistakes; the first of them.
    case mistakes(String)
    /// Nothing can be written, with the reason.
    case failed(String)
  }

  package struct Outcome: Sendable {
    /// The folder that is written; `nil` if there is none.
    package var folder: String?
    /// How many devices and groups its imported files have.
    package var devices = 0
    /// The devices and groups that were added.
    package var added: [String] = []
    /// The first of what was refused, and how much that is.
    package var refused: [ImportDiagnostic] = []
    package var refusedCount = 0
    /// The first of the devices and groups in imported files that are no longer announced, and how
    /// many there are.
    package var gone: [String] = []
    package var goneCount = 0
    /// The groups that are announced, and all of whose members are in device files.
    package var bridgeGroups: [BridgeGroup] = []
    /// The hashes of files that were written, by path.
    package var written: [String: Int] = [:]
    package var obstacle: Obstacle?

    package init() {}
  }

  /// How many refusals and names an outcome has at most, so that the event loop compares no more.
  private static let keptRefusals = 100

  private let overrides: ConfigurationLoader.Overrides
  private let environment: [String: String]

  /// `overrides` and `environment` are those with which the gateway reads its files.
  package init(_ overrides: ConfigurationLoader.Overrides, environment: [String: String]) {
    self.overrides = overrides
    self.environment = environment
  }

  /// The options of such an import into `folder`; `nil` where the settings have none.
  package static func request(
    _ settings: GatewayConfiguration,
    folder: String? = nil
  ) -> ImportPlan.Request? {
    guard let importing = settings.importing else { return nil }
    var request = ImportPlan.Request(settings, folder: folder)
    request.sources = Set(importing.sources.compactMap { ImportSource(rawValue: $0.rawValue) })
    request.isUnattended = true
    return request
  }

  /// The folder of device files, or the state folder's where that cannot be written.
  private static func folder(_ settings: GatewayConfiguration) -> String? {
    [settings.devicesDirectory, settings.stateDevices].compactMap(\.self)
      .first(where: AtomicFile.canWrite)
  }

  /// Imports; reads and writes files, and may take seconds.
  package func run(_ announced: [String: [UInt8]], base: Base) -> Outcome {
    var outcome = Outcome()
    outcome.folder = Self.folder(base.settings)
    guard let folder = outcome.folder, let request = Self.request(base.settings, folder: folder)
    else {
      outcome.obstacle = .failed(
        base.settings.stateDevices.map {
          "neither \(base.settings.devicesDirectory) nor \($0) can be written"
        } ?? "\(base.settings.devicesDirectory) cannot be written, and there is no $STATE_DIRECTORY"
      )
      return outcome
    }
    do throws(FileError) {
      try run(
        announced.map { Announcement(topic: $0, payload: $1) },
        request,
        into: folder,
        base,
        &outcome
      )
    } catch {
      outcome.obstacle = .failed(error.description)
    }
    return outcome
  }

  private func run(
    _ announcements: [Announcement],
    _ request: ImportPlan.Request,
    into folder: String,
    _ base: Base,
    _ outcome: inout Outcome
  ) throws(FileError) {
    var overrides = overrides
    // Those of settings with mistakes may not be the gateway's.
    overrides.devices = base.settings.devicesDirectory
    let (loaded, mistakes) = ConfigurationLoader.inspect(
      overrides,
      environment: environment,
      drafts: [:]
    )
    let planner = ImportPlanner(
      overrides,
      environment: environment,
      folder: folder,
      tolerating: mistakes
    )
    let present = try planner.present()
    let plan: ImportPlan
    do throws(ConfigurationFailure) {
      plan = try planner.plan(
        announcements,
        request,
        present: present,
        // A device with a mistake is missing in what was read.
        devices: mistakes.isEmpty ? loaded.registry : base.registry,
        templates: loaded.sources.map(\.template)
      )
    } catch {
      let reason = error.problems.first?.description ?? "the files would not be valid"
      outcome.obstacle = .failed(reason)
      return
    }
    outcome.obstacle = Self.obstacle(loaded, mistakes, base)
    outcome.devices = plan.files.reduce(0) { $0 + $1.devices + $1.groups }
    outcome.bridgeGroups = plan.bridgeGroups
    let gone = plan.diagnostics.filter { $0.kind == .gone && !$0.subject.contains("/") }
    outcome.gone = gone.prefix(Self.keptRefusals).map(\.subject)
    outcome.goneCount = gone.count
    let refused = plan.diagnostics.filter { $0.kind == .refused }
    outcome.refused = Array(refused.prefix(Self.keptRefusals))
    outcome.refusedCount = refused.count
    try plan.write(into: folder) { file in
      guard file.isChanged else { return }
      outcome.written[file.path] = file.new.hashValue
      outcome.added += file.changes.filter { $0.kind == .added && !$0.path.contains("/") }
        .map(\.path)
    }
  }

  /// Why the gateway must not read its files again now; `nil` if it may.
  private static func obstacle(
    _ loaded: LoadedConfiguration,
    _ mistakes: [ConfigurationProblem],
    _ base: Base
  ) -> Obstacle? {
    if let mistake = mistakes.first { return .mistakes(mistake.description) }
    let paths = Set(loaded.hashes.keys).union(base.hashes.keys).sorted()
    let changed = paths.first { loaded.hashes[$0] != base.hashes[$0] }
    return changed.map { .changed($0) }
  }
}
