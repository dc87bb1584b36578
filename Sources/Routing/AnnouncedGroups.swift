// Settle
// SPDX-License-Identifier: Apache-2.0

/// The groups of one Zigbee2MQTT and their members, as it announces them.
///
/// Source: `bridge/devices` and `bridge/groups` in mqtt_topics_and_messages.md of Zigbee2MQTT.
/// Members are named by address; commands go to the name, the address, or the number of a group.
struct AnnouncedGroups {
  /// The announcements that tell who is a member.
  enum List: String, CaseIterable {
    case devices, groups

    func topic(below base: String) -> String { "\(base)/bridge/\(rawValue)" }
  }

  private struct Group {
    /// Its name, and its number.
    var names: [String] = []
    /// The addresses of its devices.
    var members: [String] = []
  }

  /// The device names by address.
  private var devices: [(address: String, name: String)] = []
  private var groups: [Group] = []

  /// Replaces what a list said before; one that is no list of objects is empty.
  mutating func read(_ list: List, _ payload: Span<UInt8>) {
    var scanner = AnnouncementScanner()
    switch list {
    case .devices:
      devices = []
      while scanner.nextEntry(in: payload) {
        guard let address = scanner.texts["ieee_address"] else { continue }
        devices.append((address, scanner.texts["friendly_name"] ?? address))
      }
    case .groups:
      groups = []
      while scanner.nextEntry(in: payload) {
        let names = [scanner.texts["friendly_name"], scanner.texts["id"]].compactMap(\.self)
        groups.append(Group(names: names, members: scanner.memberAddresses))
      }
    }
  }

  /// The addresses of the devices that a command reaches, by the names that it may be sent to:
  /// those of groups and of their members.
  var addressesByName: [String: [String]] {
    var found: [String: [String]] = [:]
    let grouped = Set(groups.lazy.flatMap(\.members))
    for device in devices where grouped.contains(device.address) {
      found[device.name] = [device.address]
    }
    for address in grouped { found[address] = [address] }
    for group in groups {
      for name in group.names { found[name] = group.members }
    }
    return found
  }
}

/// Reads the entries of `bridge/devices` and `bridge/groups`, and skips everything else in them.
///
/// The list of 500 devices has about 5 MB, of which their names are a thousandth: a value of all of
/// it would take too much of a turn. Texts with an escaped character are left out.
private struct AnnouncementScanner {
  private var place = 0
  /// How many lists and objects are open: an entry is at 2, and one of its members at 4.
  private var depth = 0
  /// The name of the newest member of the entry, and of what is inside it.
  private var name = ""
  private var innerName = ""
  /// The texts of the newest entry that name it.
  private(set) var texts: [String: String] = [:]
  /// The addresses in the newest entry's list `members`.
  private(set) var memberAddresses: [String] = []

  /// Reads the next entry; `false` behind the last.
  mutating func nextEntry(in bytes: Span<UInt8>) -> Bool {
    (texts, memberAddresses) = ([:], [])
    while place < bytes.count {
      switch bytes[place] {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth == 1 {
          place += 1
          return true
        }
      case UInt8(ascii: "\""):
        readText(in: bytes)
      case UInt8(ascii: "0")...UInt8(ascii: "9") where depth == 2 && name == "id":
        readNumber(in: bytes)
      default: break
      }
      place += 1
    }
    return false
  }

  /// Reads the text at ``place``, and stays at its last byte.
  private mutating func readText(in bytes: Span<UInt8>) {
    let start = place + 1
    var isEscaped = false
    place = start
    while place < bytes.count, bytes[place] != UInt8(ascii: "\"") {
      if bytes[place] == UInt8(ascii: "\\") {
        isEscaped = true
        place += 1
      }
      place += 1
    }
    guard depth == 2 || depth == 4, place < bytes.count else { return }
    var next = place + 1
    while next < bytes.count, bytes[next] <= UInt8(ascii: " ") { next += 1 }
    let isName = next < bytes.count && bytes[next] == UInt8(ascii: ":")
    guard isName || isWanted else { return }
    let text = isEscaped ? "" : Text.of(bytes.extracting(start..<place))
    switch (depth, isName) {
    case (2, true): name = text
    case (2, false): texts[name] = isEscaped ? nil : text
    case (_, true): innerName = text
    case (_, false): if !isEscaped { memberAddresses.append(text) }
    }
  }

  /// Whether the value at ``place`` names the entry or one of its members.
  private var isWanted: Bool {
    depth == 2
      ? name == "ieee_address" || name == "friendly_name"
      : name == "members" && innerName == "ieee_address"
  }

  private mutating func readNumber(in bytes: Span<UInt8>) {
    let start = place
    while place + 1 < bytes.count,
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[place + 1])
    { place += 1 }
    texts[name] = Text.of(bytes.extracting(start..<place + 1))
  }
}
