// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import Values

/// Reads `device:`, who made a device and by which identifiers others announce it.
enum DetailsReader {
  static func details(_ section: Section) -> DeviceDetails? {
    guard let fields = section.nested("device", .details) else { return nil }
    var details = DeviceDetails()
    details.manufacturer = fields.text("manufacturer")
    details.model = fields.text("model")
    details.url = url(fields)
    details.identifiers = fields.words("identifiers")?.map(\.text) ?? []
    return details
  }

  private static func url(_ fields: Section) -> String? {
    let expected = "an address such as http://192.168.1.5 or https://example.org/lamp"
    guard let node = fields["url"], let text = fields.text("url", expected: expected) else {
      return nil
    }
    guard WebAddress.isValid(text) else {
      return fields.reject(
        node,
        "url",
        expected: expected,
        suggestion: !text.has("://") && WebAddress.isValid("http://\(text)")
          ? "http://\(text)" : nil
      )
    }
    return text
  }
}

/// The rules for addresses that people open in a browser.
package enum WebAddress {
  /// Whether `text` is an `http` or `https` address with a host, as Home Assistant requires.
  package static func isValid(_ text: String) -> Bool {
    let schemes = ["http://", "https://"]
    guard let scheme = schemes.first(where: { text.hasPrefix($0) }) else { return false }
    let host = text.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    return !host.isEmpty && !text.unicodeScalars.contains { $0.value <= 0x20 || $0.value == 0x7F }
  }
}
