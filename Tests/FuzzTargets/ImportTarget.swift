// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import Import

/// Announcements: each part of the input is a topic, a line feed and a payload.
///
/// A plan must pass `settle check`, whatever is announced.
enum ImportTarget {
  static let run: @Sendable ([UInt8]) -> Void = { bytes in
    let announcements = Parts.of(bytes).map { part in
      let (topic, payload) = Parts.head(part)
      return Announcement(topic: String(decoding: topic, as: UTF8.self), payload: payload)
    }
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = FuzzFolder.file("settle.yaml", "{}")
    overrides.devices = "/nowhere/devices"
    do throws(ConfigurationFailure) {
      let planner = ImportPlanner(overrides, environment: [:], folder: "/nowhere/devices")
      _ = try planner.plan(
        announcements,
        ImportPlan.Request(),
        present: [:],
        devices: Registry([])
      )
    } catch {
      fatalError("\(error.problems.map(\.description))")
    }
  }
}
