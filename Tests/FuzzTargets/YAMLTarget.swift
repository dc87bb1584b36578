// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration

/// A settings file, and device files in the further parts of the input.
enum YAMLTarget {
  static let run: @Sendable ([UInt8]) -> Void = { bytes in
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = "/nowhere/settle.yaml"
    overrides.devices = "/nowhere/devices"
    var drafts: [String: [UInt8]] = [:]
    for (number, part) in Parts.of(bytes).enumerated() {
      drafts[number == 0 ? "/nowhere/settle.yaml" : "/nowhere/devices/d\(number).yaml"] = part
    }
    do throws(ConfigurationFailure) {
      _ = try ConfigurationLoader.load(overrides, environment: [:], drafts: drafts)
    } catch {
      precondition(error.problems.allSatisfy { !$0.description.isEmpty })
    }
  }
}
