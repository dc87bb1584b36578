// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Devices

/// Creates import plans whose files have no mistakes.
package struct ImportPlanner {
  private let overrides: ConfigurationLoader.Overrides
  private let environment: [String: String]
  private let folder: String
  /// Files that do not exist yet, such as the settings, by path.
  private let settings: [String: [UInt8]]
  /// Mistakes of the files before the import, which do not prevent it.
  private let tolerated: Set<ConfigurationProblem>

  package init(
    _ overrides: ConfigurationLoader.Overrides,
    environment: [String: String],
    folder: String,
    settings: [String: [UInt8]] = [:],
    tolerating tolerated: [ConfigurationProblem] = []
  ) {
    self.tolerated = Set(tolerated)
    self.overrides = overrides
    self.environment = environment
    self.folder = folder
    self.settings = settings
  }

  /// The files that earlier imports wrote.
  ///
  /// - Throws: ``FileError`` when a file exists and cannot be read.
  package func present() throws(FileError) -> [ImportSource: ImportPlan.ExistingFile] {
    var present: [ImportSource: ImportPlan.ExistingFile] = [:]
    for source in ImportSource.allCases {
      present[source] = ImportPlan.ExistingFile(
        file: try AtomicFile.read(FilePath.join(folder, source.fileName)),
        record: try AtomicFile.read(FilePath.join(folder, source.recordName))
      )
    }
    return present
  }

  /// The devices of all files, as they are before the import.
  ///
  /// - Throws: ``ConfigurationFailure`` when the settings or those files have mistakes.
  package func devices() throws(ConfigurationFailure) -> Registry { try load([:]).registry }

  /// Creates a plan whose files pass `settle check`.
  ///
  /// A device with a mistake is left out, or left unchanged in the file, with a diagnostic. Each
  /// round validates all files again.
  ///
  /// - Throws: ``ConfigurationFailure`` for mistakes that are not in an imported device.
  package func plan(
    _ announcements: [Announcement],
    _ request: ImportPlan.Request,
    present: [ImportSource: ImportPlan.ExistingFile],
    devices: Registry,
    templates: [DeviceTemplate] = []
  ) throws(ConfigurationFailure) -> ImportPlan {
    func make(_ rejected: [String: String]) throws(ConfigurationFailure) -> ImportPlan {
      try ImportPlan(
        announcements,
        request: request,
        folder: folder,
        present: present,
        devices: devices,
        templates: templates,
        rejected: rejected
      )
    }
    var rejected: [String: String] = [:]
    while true {
      var plan = try make(rejected)
      do throws(ConfigurationFailure) {
        plan.count(in: try loaded(plan).registry)
        return plan
      } catch {
        var faulty = Self.faultyDevices(error.problems, plan)
          .filter { rejected[$0.key] == nil }
        if faulty.isEmpty {
          faulty = try devicesThatFailAlone(plan, rejected, make)
        }
        guard !faulty.isEmpty, rejected.count < 1000 else { throw error }
        rejected.merge(faulty) { first, _ in first }
      }
    }
  }

  /// The devices whose mistakes are in other lines than their own, such as those of a profile.
  private func devicesThatFailAlone(
    _ plan: ImportPlan,
    _ rejected: [String: String],
    _ make: ([String: String]) throws(ConfigurationFailure) -> ImportPlan
  ) throws(ConfigurationFailure) -> [String: String] {
    let ids = plan.files.flatMap(\.ids).filter { rejected[$0] == nil }
    var others = rejected
    for id in ids { others[id] = "" }
    // Mistakes that nothing of the plan has are thrown here.
    _ = try loaded(try make(others))
    var faulty: [String: String] = [:]
    for id in ids {
      others[id] = nil
      do throws(ConfigurationFailure) {
        _ = try loaded(try make(others))
      } catch {
        faulty[id] = error.problems.first?.message ?? "it would not be valid"
      }
      others[id] = ""
    }
    return faulty
  }

  /// The settings and devices, as they are once the files of `plan` are written.
  ///
  /// - Throws: ``ConfigurationFailure`` for mistakes in files that are not in the plan.
  package func loaded(_ plan: ImportPlan) throws(ConfigurationFailure) -> LoadedConfiguration {
    var drafts: [String: [UInt8]] = [:]
    for file in plan.files { drafts[file.path] = file.new }
    return try load(drafts)
  }

  private func load(
    _ drafts: [String: [UInt8]]
  ) throws(ConfigurationFailure) -> LoadedConfiguration {
    let (loaded, mistakes) = ConfigurationLoader.inspect(
      overrides,
      environment: environment,
      drafts: settings.merging(drafts) { $1 }
    )
    let new = mistakes.filter { !tolerated.contains($0) }
    guard new.isEmpty else { throw ConfigurationFailure(problems: new) }
    return loaded
  }

  /// The devices with problems, and the first problem of each.
  private static func faultyDevices(
    _ problems: [ConfigurationProblem],
    _ plan: ImportPlan
  ) -> [String: String] {
    var devices: [String: String] = [:]
    for file in plan.files {
      guard let outline = try? YAMLOutline.read(file.new, file: file.path) else { continue }
      let all = outline.entries ?? []
      // A mistake of a group is found in its own lines, not in those of all groups.
      for entry in all.filter({ $0.key != "groups" }) + (outline["groups"]?.entries ?? []) {
        let first = file.new.position(of: entry.start).line
        let last = file.new.position(of: entry.value.range.upperBound).line
        let own = problems.first { $0.file == file.path && (first...last).contains($0.line) }
        if let own { devices[entry.key] = own.message }
      }
    }
    return devices
  }
}
