// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Devices

/// Makes plans until what would be written has no mistake left.
package struct ImportCheck {
  private let overrides: ConfigurationLoader.Overrides
  private let environment: [String: String]
  private let folder: String

  package init(
    _ overrides: ConfigurationLoader.Overrides,
    environment: [String: String],
    folder: String
  ) {
    self.overrides = overrides
    self.environment = environment
    self.folder = folder
  }

  /// The files that earlier imports wrote.
  package func present() throws(FileTrouble) -> [ImportSource: ImportPlan.Present] {
    var present: [ImportSource: ImportPlan.Present] = [:]
    for source in ImportSource.allCases {
      present[source] = ImportPlan.Present(
        file: try AtomicFile.read(ImportPlan.path(source.fileName, in: folder)),
        record: try AtomicFile.read(ImportPlan.path(source.recordName, in: folder))
      )
    }
    return present
  }

  /// The devices of all files but those.
  package func others() throws(ConfigurationFailure) -> Registry {
    var drafts: [String: [UInt8]] = [:]
    for source in ImportSource.allCases {
      drafts[ImportPlan.path(source.fileName, in: folder)] = []
    }
    return try load(drafts).registry
  }

  /// A plan whose files `settle check` accepts.
  ///
  /// A device with a mistake is left out, or left as it is, and said.
  ///
  /// - Throws: What cannot be helped that way.
  package func plan(
    _ announcements: [Announcement],
    _ request: ImportPlan.Request,
    present: [ImportSource: ImportPlan.Present],
    others: Registry
  ) throws(ConfigurationFailure) -> ImportPlan {
    var refused: [String: String] = [:]
    while true {
      let plan = try ImportPlan(
        announcements,
        request: request,
        folder: folder,
        present: present,
        others: others,
        refused: refused
      )
      var drafts: [String: [UInt8]] = [:]
      for file in plan.files { drafts[file.path] = file.new }
      do throws(ConfigurationFailure) {
        _ = try load(drafts)
        return plan
      } catch {
        let wrong = Self.culprits(error.problems, plan).filter { refused[$0.key] == nil }
        guard !wrong.isEmpty, refused.count < 1000 else { throw error }
        refused.merge(wrong) { first, _ in first }
      }
    }
  }

  private func load(
    _ drafts: [String: [UInt8]]
  ) throws(ConfigurationFailure) -> LoadedConfiguration {
    try ConfigurationLoader.load(overrides, environment: environment, drafts: drafts)
  }

  /// The devices that problems are in, each with its first.
  private static func culprits(
    _ problems: [ConfigurationProblem],
    _ plan: ImportPlan
  ) -> [String: String] {
    var culprits: [String: String] = [:]
    for file in plan.files {
      guard let outline = try? YAMLOutline.read(file.new, file: file.path) else { continue }
      for entry in outline.entries ?? [] {
        let first = Self.line(of: entry.start, in: file.new)
        let last = Self.line(of: entry.value.range.upperBound, in: file.new)
        let own = problems.first { $0.file == file.path && (first...last).contains($0.line) }
        if let own { culprits[entry.key] = own.message }
      }
    }
    return culprits
  }

  private static func line(of place: Int, in bytes: [UInt8]) -> Int {
    bytes[..<place].count { $0 == 0x0A } + 1
  }
}
