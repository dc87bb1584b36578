// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import JSON
internal import Values

/// Who made a device, and the identifiers under which it is announced to Home Assistant.
struct ImportedDetails: Hashable, Sendable {
  private(set) var manufacturer: String?
  private(set) var model: String?
  private(set) var url: String?
  private(set) var identifiers: [String]

  /// The maximum number of identifiers, and of bytes of each.
  private static let mostIdentifiers = 20
  private static let longestIdentifier = 200

  init(
    manufacturer: JSONValue? = nil,
    model: JSONValue? = nil,
    url: JSONValue? = nil,
    identifiers: [String] = []
  ) {
    self.manufacturer = Self.text(manufacturer)
    self.model = Self.text(model)
    self.url = url?.string.flatMap { WebAddress.isValid($0) && $0.utf8.count <= 1000 ? $0 : nil }
    var known: Set<String> = []
    self.identifiers = identifiers.filter { identifier in
      (1...Self.longestIdentifier).contains(identifier.utf8.count)
        && PlainText.clean(identifier, limit: Self.longestIdentifier) == identifier
        && known.count < Self.mostIdentifiers && known.insert(identifier).inserted
    }
  }

  /// The details in the `device` of an announcement to Home Assistant, its names in full.
  init(announced device: JSONValue) {
    let listed = device["identifiers"].map { $0.elements ?? [$0] } ?? []
    self.init(
      manufacturer: device["manufacturer"],
      model: device["model"],
      url: device["configuration_url"],
      identifiers: listed.compactMap(\.scalarText)
    )
  }

  private static func text(_ value: JSONValue?) -> String? {
    guard let text = value?.scalarText.map({ PlainText.clean($0) }), !text.isEmpty else {
      return nil
    }
    return text
  }

  /// These details, with those of `other` where they lack one.
  func filled(from other: ImportedDetails?) -> ImportedDetails {
    var filled = self
    filled.manufacturer = manufacturer ?? other?.manufacturer
    filled.model = model ?? other?.model
    filled.url = url ?? other?.url
    filled.identifiers += other?.identifiers.filter { !identifiers.contains($0) } ?? []
    return filled
  }

  /// The entries of `device:`.
  var members: [JSONValue.Member] {
    var members: [JSONValue.Member] = []
    for (name, text) in [("manufacturer", manufacturer), ("model", model), ("url", url)] {
      if let text { members.append(.init(name, .string(text))) }
    }
    if !identifiers.isEmpty {
      members.append(.init("identifiers", .array(identifiers.map { .string($0) })))
    }
    return members
  }
}
