// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices

/// Rules for names and topics in the settings.
enum SettingsRules {
  /// Whether a name is valid for a lane, a broker, a cluster or a member of one.
  static func isName(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy(isName(byte:))
  }

  /// Whether a byte may be part of such a name.
  static func isName(byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// Why a topic cannot be the base topic; `nil` if it can.
  static func problem(inBaseTopic base: String) -> String? {
    if let problem = Topic.problem(inName: base) { return problem }
    if base.utf8.first == UInt8(ascii: "/") || base.utf8.last == UInt8(ascii: "/") {
      return "the base topic must not start or end with '/'"
    }
    return base.utf8.count > 1_000 ? "the base topic has at most 1,000 bytes" : nil
  }

  /// The longest path of a unix socket that the kernel accepts, in bytes.
  static let longestSocketPath = 107

  /// Why a path cannot be that of a socket; `nil` if it can.
  static func problem(inSocketPath path: String) -> String? {
    let count = path.utf8.count
    return count > longestSocketPath
      ? "the path of a socket has at most \(longestSocketPath) bytes; this one has \(count)" : nil
  }

  /// The topic filters on which the gateway accepts commands.
  static func commandFilters(baseTopic base: String) -> [String] {
    ["set", "step", "toggle", "flush", "cancel"].map { "\(base)/+/+/\($0)" }
      + ["\(base)/+/set", "\(base)/+/get"]
  }
}
