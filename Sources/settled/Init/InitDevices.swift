// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Devices
import Import

/// The devices of `settle init`: what is announced at the broker, as files to write.
struct InitDevices {
  /// Files to write, and all devices that the gateway has then.
  struct Planned {
    var plan: ImportPlan
    var registry: Registry
  }

  let command: InitCommand
  let folder: SetupFolder
  let report: InitReport

  /// Reads the announcements and plans the files; a lane for Zigbee is added to the settings.
  ///
  /// - Throws: ``InitEnd`` when they cannot be read, or files in the folder have mistakes.
  func planned(for broker: inout InitBroker.Tested) throws(InitEnd) -> Planned {
    let reader = AnnouncementReader(
      broker.configuration,
      clientID: "settle-init",
      timeout: command.timeout
    )
    var request = ImportPlan.Request()
    request.ownBase = broker.configuration.baseTopic
    request.schema = Self.schema(.devices, in: folder.devices)
    let announcements: [Announcement]
    do throws(AnnouncementReader.Failure) {
      announcements = try reader.read(request)
    } catch {
      throw InitEnd(error.code, error.reason)
    }
    if announcements.contains(where: { $0.topic.hasSuffix("/bridge/devices") }) {
      broker.settings.hasZigbee = true
      request.lanes = ["zigbee"]
    }
    do throws(ConfigurationFailure) {
      let planner = planner(broker)
      let plan = try planner.plan(
        announcements,
        request,
        present: [:],
        devices: planner.devices()
      )
      report.show(plan)
      return Planned(plan: plan, registry: try planner.loaded(plan).registry)
    } catch {
      throw InitEnd(error)
    }
  }

  /// A planner for files that do not exist yet, the settings included.
  private func planner(_ broker: InitBroker.Tested) -> ImportPlanner {
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = folder.settings
    return ImportPlanner(
      overrides,
      // No other variable counts, because a service has none.
      environment: broker.password.map { ["SETTLE_MQTT_PASSWORD": $0] } ?? [:],
      folder: folder.devices,
      settings: [folder.settings: Array(broker.settings.text.utf8)]
    )
  }

  /// The schema that files in `folder` name.
  static func schema(_ name: SchemaPlace.Name, in folder: String) -> String? {
    SchemaPlace.find(name, forFilesIn: folder, program: SchemaPlace.program)
  }
}
