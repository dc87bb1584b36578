// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import FoundationEssentials

/// The result of loading.
enum Outcome {
  case loaded(LoadedConfiguration)
  case refused([ConfigurationProblem])
}

/// Runs the loader on files in a temporary folder.
struct Loading {
  /// The settings file is `config/settle.yaml`, device files are in `devices/`.
  static func run(
    settings: String? = nil,
    devices: KeyValuePairs<String, String> = [:],
    environment: [String: String] = [:],
    overrides change: (inout ConfigurationLoader.Overrides) -> Void = { _ in }
  ) throws -> (outcome: Outcome, folder: TemporaryFolder) {
    let folder = try TemporaryFolder()
    try folder.write(Array((settings ?? "devices: ../devices").utf8), to: "config/settle.yaml")
    try FileManager.default.createDirectory(
      atPath: folder.path + "/devices",
      withIntermediateDirectories: true
    )
    for (name, text) in devices { try folder.write(Array(text.utf8), to: "devices/\(name)") }
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = folder.path + "/config/settle.yaml"
    change(&overrides)
    return (load(overrides, environment: environment), folder)
  }

  static func load(
    _ overrides: ConfigurationLoader.Overrides,
    environment: [String: String] = [:]
  ) -> Outcome {
    do throws(ConfigurationFailure) {
      return .loaded(try ConfigurationLoader.load(overrides, environment: environment))
    } catch {
      return .refused(error.problems)
    }
  }

  /// The problems as lines, with the file's bare name.
  static func lines(_ problems: [ConfigurationProblem], in folder: TemporaryFolder) -> [String] {
    problems.map { problem in
      var short = problem
      short.file = String(problem.file.split(separator: "/").last ?? "")
      return short.description.replacing(folder.path, with: "")
    }
  }

  /// The mistakes in one device file, as lines.
  static func mistakes(inDevices text: String, settings: String? = nil) throws -> [String] {
    let (outcome, folder) = try run(settings: settings, devices: ["d.yaml": text])
    guard case .refused(let problems) = outcome else { return [] }
    return lines(problems, in: folder)
  }

  /// The mistakes in a settings file, as lines.
  static func mistakes(
    inSettings text: String,
    environment: [String: String] = [:]
  ) throws -> [String] {
    let (outcome, folder) = try run(
      settings: text,
      devices: ["lamp.yaml": lamp],
      environment: environment
    ) { overrides in
      // Only tests of the folder of device files have one.
      guard !text.hasPrefix("devices"), let config = overrides.config else { return }
      overrides.devices = config.replacing("/config/settle.yaml", with: "/devices")
    }
    guard case .refused(let problems) = outcome else { return [] }
    return lines(problems, in: folder)
  }

  /// A device file without mistakes.
  static let lamp = """
    lamp:
      properties:
        power: {type: boolean, command: {topic: lamp/set}}
        level: {type: number, range: [0, 100], command: {topic: lamp/level}}
    """

  /// The project's folder.
  static let root: String = {
    let file = #filePath
    return file.split(separator: "/", omittingEmptySubsequences: false).dropLast(3)
      .joined(separator: "/")
  }()
}
