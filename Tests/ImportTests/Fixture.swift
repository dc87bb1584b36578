// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
@testable import Import
import JSON
import Operations
import Testing

/// Announcements of real installations, and shortcuts to a plan.
enum Fixture {
  static let folder: String = {
    let file = #filePath
    return file.split(separator: "/", omittingEmptySubsequences: false).dropLast()
      .joined(separator: "/") + "/Fixtures"
  }()

  static func text(_ name: String) throws -> String {
    try #require(TextFile.read("\(folder)/\(name)"))
  }

  /// Lines of a topic, a space and a payload, as `mosquitto_sub -v` prints them.
  static func messages(_ name: String) throws -> [Announcement] {
    try text(name).split(separator: "\n").map { line in
      let topic = line.prefix { $0 != " " }
      return Announcement(topic: String(topic), text: String(line.dropFirst(topic.count + 1)))
    }
  }

  /// The Zigbee2MQTT home of 60 devices that can be set, sensors, remotes and groups.
  static func zigbee2mqtt() throws -> [Announcement] {
    [
      Announcement(topic: "zigbee2mqtt/bridge/devices", text: try text("bridge-devices.json")),
      Announcement(topic: "zigbee2mqtt/bridge/groups", text: try text("bridge-groups.json")),
    ]
  }

  static func all() throws -> [Announcement] {
    try zigbee2mqtt() + messages("homeassistant.txt") + messages("homie.txt")
  }

  /// The announcements of programs that use templates; see ``UpstreamTests``.
  static let upstream = [
    "openbeken.txt", "openmqttgateway.txt", "zwave-js-ui.txt", "ems-esp.txt", "template-lights.txt",
  ]

  /// `bridge/devices` with one device that has these exposes.
  static func device(exposes: String, name: String = "Lamp") -> [Announcement] {
    let text = """
      [{"ieee_address":"0x01","type":"Router","supported":true,"disabled":false,
      "friendly_name":\(JSONWriter.text(.string(name))),
      "definition":{"model":"M","vendor":"V","exposes":\(exposes)}}]
      """
    return [Announcement(topic: "zigbee2mqtt/bridge/devices", text: text)]
  }

  static func plan(
    _ announcements: [Announcement],
    present: [ImportSource: ImportPlan.ExistingFile] = [:],
    others: [Device] = [],
    _ change: (inout ImportPlan.Request) -> Void = { _ in }
  ) throws -> ImportPlan {
    var request = ImportPlan.Request()
    change(&request)
    return try ImportPlan(
      announcements,
      request: request,
      folder: "devices",
      present: present,
      devices: Registry(others)
    )
  }

  /// The devices in the plan's only file, without its header.
  static func file(_ announcements: [Announcement]) throws -> String {
    let file = try #require(plan(announcements).files.first)
    return String(decoding: file.new, as: UTF8.self).split(separator: "\n\n")
      .dropFirst().joined(separator: "\n\n")
  }

  /// The diagnostics, one line each.
  static func diagnostics(_ announcements: [Announcement]) throws -> [String] {
    try plan(announcements).diagnostics.map { "\($0.kind.rawValue): \($0.subject): \($0.reason)" }
  }
}

extension ImportPlan.File {
  /// The file as the next import finds it.
  var asPresent: ImportPlan.ExistingFile { .init(file: new, record: record) }
  var text: String { String(decoding: new, as: UTF8.self) }
}
