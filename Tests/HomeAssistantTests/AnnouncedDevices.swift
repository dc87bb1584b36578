// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import FoundationEssentials
import HomeAssistant
import JSON
import Testing

/// Loads devices from text and profiles and returns their announcements.
protocol AnnouncedDevices {}

extension AnnouncedDevices {
  func devices(_ text: String) throws -> [Device] {
    let folder = FileManager.default.temporaryDirectory.path + "/settle-ha-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try Data(text.utf8).write(to: URL(filePath: folder + "/devices.yaml"))
    let loaded = try ConfigurationLoader.loadDevices(in: folder)
    return Array(loaded.registry.devices)
  }

  func announcer(
    _ format: DiscoveryConfiguration.Format = .device,
    base: String = "settle"
  ) -> DiscoveryAnnouncer {
    var settings = DiscoveryConfiguration()
    settings.format = format
    return DiscoveryAnnouncer(baseTopic: base, configuration: settings, version: "9.9")
  }

  /// The entities of the first device, by name.
  func entities(_ text: String) throws -> [String: JSONValue] {
    let device = try #require(try devices(text).first)
    let message = try #require(announcer().messages(for: device).first)
    guard case .object(let members) = message.payload?["cmps"] else { return [:] }
    return Dictionary(uniqueKeysWithValues: members.map { ($0.name, $0.value) })
  }

  func profile(_ name: String, _ more: String = "") -> String {
    "lamp:\n  profile: \(name)\n  topic: t/lamp\n\(more)"
  }

  /// One device for each built-in profile.
  func profileDevices() throws -> [Device] {
    let folder = FileManager.default.currentDirectoryPath + "/devices/profiles"
    let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    var found: [Device] = []
    for file in files where file.hasSuffix(".yaml") {
      let text = try String(contentsOfFile: folder + "/" + file, encoding: .utf8)
      for line in text.split(separator: "\n") {
        guard let first = line.first, first.isLetter, line.hasSuffix(":") else { continue }
        let name = String(line.dropLast())
        // The base of imported devices, which has no properties.
        if name == "zigbee2mqtt/device" { continue }
        found += try devices(profile(name, try parameters(of: name, in: text)))
      }
    }
    return found
  }

  /// Values for the parameters of profiles.
  private func parameters(of profile: String, in text: String) throws -> String {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let block = lines.drop { $0 != "\(profile):" }.dropFirst()
      .prefix { $0.hasPrefix(" ") || $0.isEmpty }
    guard var line = block.first(where: { $0.hasPrefix("  parameters: ") }) else { return "" }
    if line.hasSuffix("*parameters") {
      line = try #require(lines.first { $0.contains("parameters: &parameters {") })
    }
    let values = line.drop { $0 != "{" }
    return "  parameters: \(values.replacing("null", with: "\"1\""))\n"
  }
}
