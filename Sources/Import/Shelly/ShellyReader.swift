// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import JSON
internal import Values

/// Reads what Shelly devices reply to ``ShellyQuestions``.
struct ShellyReader {
  /// Reads the devices of all generations, sorted by name.
  func findings(_ announcements: [Announcement], wasAsked: Bool) -> Findings {
    var findings = Findings()
    var known: [String: JSONValue] = [:]
    for announcement in announcements where !announcement.payload.isEmpty {
      let isFirst = announcement.topic == ShellyQuestions.announcement
      guard isFirst || announcement.topic == ShellyQuestions.reply,
        let json = findings.json(of: announcement)
      else { continue }
      if isFirst {
        // Later generations announce themselves there too, and are asked for more.
        if (json["gen"]?.double ?? 1) < 2 { readFirst(json, &findings) }
      } else if let id = json["src"]?.string, let info = json["result"], info["model"] != nil {
        known[id] = info
      }
    }
    for announcement in announcements where announcement.topic == ShellyQuestions.reply {
      guard let json = try? announcement.json(), let id = json["src"]?.string,
        let config = json["result"], config["sys"] != nil
      else { continue }
      readLater(config, id: id, info: known[id] ?? .null, &findings)
    }
    if findings.devices.isEmpty, !wasAsked {
      let count = announcements.count {
        $0.topic.hasPrefix("shellies/") && $0.topic.hasSuffix("/online")
      }
      if count > 0 {
        findings.report(.leftOut, "Shelly", "they announce themselves only when asked, see --ask")
      }
    }
    findings.devices.sort { ($0.name, $0.identity) < ($1.name, $1.identity) }
    return findings
  }

  // MARK: - The first generation

  /// The profile and the number of channels by model, as aioshelly names the models.
  private static let models: [String: (profile: String, count: Int)] = [
    "SHSW-1": ("relay", 1), "SHSW-L": ("relay", 1), "SHSW-PM": ("relay", 1),
    "SHSW-21": ("relay", 2), "SHSW-25": ("relay", 2), "SHSW-44": ("relay", 4),
    "SHPLG-1": ("relay", 1), "SHPLG2-1": ("relay", 1), "SHPLG-S": ("relay", 1),
    "SHPLG-U1": ("relay", 1), "SHEM": ("relay", 1), "SHEM-3": ("relay", 1),
    "SHUNI-1": ("relay", 2), "SHDM-1": ("light", 1), "SHDM-2": ("light", 1),
    "SHBDUO-1": ("light", 1), "SHVIN-1": ("light", 1), "SHTRV-01": ("trv", 1),
    "SHBLB-1": ("bulb", 1), "SHCB-1": ("bulb", 1), "SHRGBW2": ("white", 4),
  ]

  private func readFirst(_ json: JSONValue, _ findings: inout Findings) {
    guard let id = json["id"]?.string, TopicName.problem("shellies/\(id)") == nil else {
      return findings.report(.refused, ShellyQuestions.announcement, "it has no usable id")
    }
    let model = json["model"]?.string ?? ""
    guard let known = Self.models[model] else {
      return findings.report(
        .leftOut,
        id,
        "the model '\(Excerpt.of(model))' has nothing to set, or is not supported"
      )
    }
    // A bulb changes between its modes, an RGBW2 stays in one.
    let (profile, count) =
      switch (known.profile, json["mode"]) {
      case (_, "roller"): ("roller", 1)
      case ("white", "color"): ("color", 1)
      default: known
      }
    var device = ImportedDevice(identity: "shellies/\(id)", name: id, comment: "Shelly \(model)")
    device.topic = "shellies/\(id)"
    device.details = ImportedDetails(
      manufacturer: "Shelly",
      model: .string(model),
      url: json["ip"]?.string.map { .string("http://\($0)/") }
    )
    for channel in 0..<count {
      device.add(
        "shelly/gen1-\(profile)",
        channel: channel,
        ending: count > 1 ? "_\(channel + 1)" : "",
        name: nil
      )
    }
    findings.devices.append(device)
  }

  // MARK: - Later generations

  private static let components = [
    "switch", "light", "rgb", "rgbw", "cct", "cover", "thermostat",
  ]

  private func readLater(
    _ config: JSONValue,
    id: String,
    info: JSONValue,
    _ findings: inout Findings
  ) {
    let topic = config["mqtt"]?["topic_prefix"]?.string ?? id
    let own = config["sys"]?["device"]?["name"]?.string ?? info["name"]?.string ?? ""
    let name = own.isEmpty ? id : own
    if let problem = TopicName.problem("\(topic)/rpc") {
      return findings.report(.refused, name, problem)
    }
    var device = ImportedDevice(
      identity: id,
      name: name,
      comment: ["Shelly", info["model"]?.string ?? "", id].filter { !$0.isEmpty }
        .joined(separator: " ")
    )
    device.topic = topic
    device.details = ImportedDetails(manufacturer: "Shelly", model: info["model"])
    let parts = (config.members ?? []).prefix(500).compactMap { member -> Part? in
      let words = member.name.split(separator: ":")
      guard words.count == 2, let number = Int(words[1]), Self.components.contains(String(words[0]))
      else { return nil }
      return Part(
        component: String(words[0]),
        number: number,
        name: member.value["name"]?.string.map { PlainText.clean($0, limit: 60) }
      )
    }
    for part in parts {
      // The properties of one component alone keep their plain names.
      let isMixed = parts.contains { $0.component != part.component }
      let number = isMixed ? "_\(part.component)_\(part.number + 1)" : "_\(part.number + 1)"
      let ending = parts.count == 1 ? "" : number
      device.add(
        "shelly/gen2-\(part.component)",
        channel: part.number,
        ending: ending,
        name: parts.count > 1 ? part.name : nil
      )
    }
    if config["mqtt"]?["status_ntf"] == false {
      findings.report(
        .partly,
        name,
        "its status notifications are off, so that changes by hand are not seen"
      )
    }
    if parts.isEmpty {
      findings.report(.leftOut, name, "it has no component that can be set")
    } else {
      findings.devices.append(device)
    }
  }

  private struct Part {
    let component: String
    let number: Int
    let name: String?
  }
}

extension ImportedDevice {
  /// Adds the properties of a profile for one of its channels.
  fileprivate mutating func add(
    _ profile: String,
    channel: Int,
    ending: String,
    name: String?
  ) {
    guard let json = BuiltInProfile.json(profile) else { return }
    if json["merge"] == true { merge = true }
    if let factors = json["options"]?.members { optionFactors = factors }
    if availability.isEmpty, let source = json["availability"] { availability = [source] }
    let members = json["properties"]?.members ?? []
    let names = Set(members.map(\.name))
    for member in members {
      var made = ImportedProperty(member.name + ending, type: "")
      for field in member.value.members ?? [] {
        made[field.name] = field.value.withChannel(channel)
      }
      made.renameOthers { names.contains($0) ? $0 + ending : $0 }
      if !ending.isEmpty { made["aliases"] = nil }
      if let name, !name.isEmpty { made["name"] = .string(name) }
      properties.append(made)
    }
  }
}

extension JSONValue {
  /// The value with the number of a channel in place of `$channel`.
  fileprivate func withChannel(_ channel: Int) -> JSONValue {
    replacingTexts { text in
      text == "$channel"
        ? .integer(Int64(channel)) : .string(text.replaced("$channel", by: "\(channel)"))
    }
  }
}

/// What Shelly devices are asked for, because they announce themselves only when asked.
///
/// Source: `shellies/command` of the first generation, and `Shelly.GetConfig` and
/// `Shelly.GetDeviceInfo` of the later ones, as ha-shellies-discovery and its successor use them.
package struct ShellyQuestions: Sendable {
  /// A message that asks.
  package struct Question: Hashable, Sendable {
    package let topic: String
    package let payload: [UInt8]
  }

  /// Where devices of later generations reply, with `/rpc` behind it.
  static let source = "settle-import"
  static let announcement = "shellies/announce"
  static let reply = "\(source)/rpc"
  private static let presence = "/online"

  /// The topic filters of announcements, replies and devices that may be asked.
  static let filters = [announcement, reply, "+\(presence)", "+/+\(presence)"]

  private var asked: Set<String> = []

  package init() {}

  /// The question to all devices of the first generation.
  package let first = Question(topic: "shellies/command", payload: Array("announce".utf8))

  /// What a device is asked that said on this topic that it is online; nothing for any other.
  package mutating func questions(after message: Announcement) -> [Question] {
    guard message.topic.hasSuffix(Self.presence), !message.topic.hasPrefix("shellies/"),
      message.payload == Array("true".utf8)
    else { return [] }
    let prefix = String(message.topic.dropLast(Self.presence.count))
    guard asked.insert(prefix).inserted, TopicName.problem("\(prefix)/rpc") == nil else {
      return []
    }
    return ["Shelly.GetDeviceInfo", "Shelly.GetConfig"].enumerated().map { number, method in
      let request = JSONValue.object([
        "id": .integer(Int64(number + 1)), "src": .string(Self.source), "method": .string(method),
      ])
      return Question(topic: "\(prefix)/rpc", payload: JSONWriter.bytes(request))
    }
  }
}
