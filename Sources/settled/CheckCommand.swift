// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Control
import Devices
import JSON
import Operations

/// `settle check`: validates configuration and devices.
struct CheckCommand: ConfiguredCommand {
  static let name = "check"
  static let summary = "Validate configuration and devices."
  static let discussion = """
    Prints every mistake with its position, what was found and what is allowed. The exit code is \
    78 if there is any.
    """
  static let examples = [
    Example("settle check", "Check the files that settle run would read."),
    Example(
      "settle check --config config/settle.yaml --json",
      "Check other settings, and print JSON."
    ),
  ]
  static let parameters: [Parameter<Self>] =
    configurationParameters
    + [.flag("json", { $0.json = true }, help: "Print JSON, one object per line.")]

  var config: String?
  var devices: String?
  var json = false

  func run() -> ExitCode {
    let loaded: LoadedConfiguration
    do throws(ConfigurationFailure) {
      loaded = try ConfigurationLoader.load(
        overridesOrNamed(),
        environment: Environment.all
      )
    } catch {
      for problem in error.problems { report(problem, "error") }
      if !json { complain(CountText.text(error.problems.count, "problem")) }
      return .badConfiguration
    }
    for warning in loaded.warnings { report(warning, "warning") }
    StandardOutput.print(json ? jsonSummary(of: loaded) : summary(of: loaded))
    return .done
  }

  /// Nothing is written, so the usual files do where the running gateway does not name its own.
  private func overridesOrNamed() -> ConfigurationLoader.Overrides {
    do throws(RunningGateway.Unknown) {
      return try overrides()
    } catch {
      complain(error.reason)
      return named
    }
  }

  private func report(_ problem: ConfigurationProblem, _ severity: String) {
    if json {
      StandardOutput.print(JSONWriter.text(problem.json(severity: severity)))
    } else {
      StandardOutput.print(
        severity == "warning" ? "warning: \(problem.description)" : problem.description
      )
    }
  }

  private func summary(of loaded: LoadedConfiguration) -> String {
    let groups = loaded.registry.groupCount
    var parts = [CountText.text(loaded.registry.deviceNumbers.count - groups, "device")]
    if groups > 0 { parts.append(CountText.text(groups, "group")) }
    parts.append(CountText.text(loaded.registry.keyCount, "property", "properties"))
    if !loaded.gateway.routes.isEmpty {
      parts.append(CountText.text(loaded.gateway.routes.count, "route"))
    }
    if !loaded.gateway.inputs.isEmpty {
      parts.append(CountText.text(loaded.gateway.inputs.count, "input"))
    }
    if !loaded.warnings.isEmpty {
      parts.append(CountText.text(loaded.warnings.count, "warning"))
    }
    // Profiles may be many; only those with a mistake are named.
    let profiles = Set(loaded.profileFiles)
    var files = loaded.files.filter { !profiles.contains($0) }
    if !profiles.isEmpty {
      files.append(CountText.text(profiles.count, "file of profiles", "files of profiles"))
    }
    let read = files.isEmpty ? "no files" : files.joined(separator: ", ")
    return "OK: \(parts.joined(separator: ", ")) (\(read))"
  }

  private func jsonSummary(of loaded: LoadedConfiguration) -> String {
    let groups = loaded.registry.groupCount
    return JSONWriter.text(
      .object([
        "ok": true, "devices": .integer(Int64(loaded.registry.deviceNumbers.count - groups)),
        "groups": .integer(Int64(groups)),
        "properties": .integer(Int64(loaded.registry.keyCount)),
        "routes": .integer(Int64(loaded.gateway.routes.count)),
        "inputs": .integer(Int64(loaded.gateway.inputs.count)),
        "warnings": .integer(Int64(loaded.warnings.count)),
        "files": .array(loaded.files.map { .string($0) }),
      ])
    )
  }
}
