// Settle
// SPDX-License-Identifier: Apache-2.0

import Values

/// A broker's address as people type it: `broker.lan`, `mqtt://anna:secret@broker.lan:1883`.
package struct BrokerAddress: Hashable, Sendable {
  /// The address for the settings, without user name and password.
  package var url: String
  package var username: String?
  package var password: String?

  /// The broker of a machine that runs one.
  package static let standard = "mqtt://127.0.0.1:1883"

  /// Takes user name and password out of an address, and adds `mqtt://` if no scheme is given.
  ///
  /// The rest of the address is checked as in the settings. In user name and password, `%` and two
  /// hexadecimal digits stand for a byte.
  package init(_ text: String) {
    guard !text.hasPrefix("unix:") else {
      url = text
      return
    }
    let start = text.firstPlace(of: "://")?.upperBound
    let scheme = start.map { String(text[..<$0]) } ?? "mqtt://"
    var rest = start.map { text[$0...] } ?? text[...]
    // A password may contain "@"; a host cannot.
    let authority = rest.prefix { $0 != "/" }
    if let at = authority.lastIndex(of: "@") {
      let user = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      username = user.first.flatMap { $0.isEmpty ? nil : Self.decoded($0) }
      password = user.count > 1 && !user[1].isEmpty ? Self.decoded(user[1]) : nil
      rest = rest[rest.index(after: at)...]
    }
    url = scheme + rest
  }

  /// The text with each `%` and its two digits replaced; unchanged if the result is not UTF-8.
  private static func decoded(_ text: Substring) -> String {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      let digits = String(decoding: rest.prefix(2), as: UTF8.self)
      if byte == UInt8(ascii: "%"), digits.utf8.count == 2, let value = UInt8(digits, radix: 16) {
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self) ?? String(text)
  }
}
