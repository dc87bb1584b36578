// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
internal import JSON
internal import MQTT
internal import Values

/// The devices of one source in a stable order, and diagnostics.
struct Findings: Hashable, Sendable {
  var devices: [ImportedDevice] = []
  /// What is said of a device that another source has.
  struct Description: Hashable, Sendable {
    var area: String?
    var details: ImportedDetails
    var entities = EntityDescriptions()
  }

  /// Descriptions of devices that another source has, by their identities here.
  var described: [String: Description] = [:]
  private(set) var diagnostics: [ImportDiagnostic] = []
  private var seen: Set<ImportDiagnostic> = []

  mutating func report(_ kind: ImportDiagnostic.Kind, _ subject: String, _ reason: String) {
    // Announced text must not control the terminal that shows it.
    let diagnostic = ImportDiagnostic(
      kind,
      PlainText.clean(subject, limit: 80),
      PlainText.clean(reason, limit: 4000)
    )
    if seen.insert(diagnostic).inserted { diagnostics.append(diagnostic) }
  }

  /// The payload of an announcement; one that cannot be read is reported.
  mutating func json(of announcement: Announcement) -> JSONValue? {
    do throws(Rejection) {
      return try announcement.json()
    } catch {
      report(.refused, announcement.topic, error.reason)
      return nil
    }
  }

  /// Removes the states that the gateway would report to itself.
  mutating func dropEchoedStates() {
    for index in devices.indices {
      for note in devices[index].dropEchoedStates() { report(.partly, devices[index].name, note) }
    }
  }

  mutating func add(_ other: Findings) {
    devices += other.devices
    for diagnostic in other.diagnostics where seen.insert(diagnostic).inserted {
      diagnostics.append(diagnostic)
    }
  }
}

/// Something that an import left out or changed, and the reason.
package struct ImportDiagnostic: Hashable, Sendable {
  package enum Kind: String, Hashable, Sendable {
    /// An announcement that is unreadable or invalid.
    case refused
    /// A reading about the device itself, such as its signal strength, or one without a single
    /// value.
    case diagnostic
    /// A value that can be set, in a form that Settle does not support.
    case leftOut = "left_out"
    /// Imported in part.
    case partly
    /// Imported, and its commands control a bridge.
    case controlsBridge = "controls_bridge"
    /// A value that the user edited and that differs from the announcement.
    case kept
    /// In the file and no longer announced.
    case gone
  }

  package var kind: Kind
  /// The device, property or topic, safe for a terminal.
  package var subject: String
  package var reason: String

  package init(_ kind: Kind, _ subject: String, _ reason: String) {
    self.kind = kind
    self.subject = subject
    self.reason = reason
  }
}

extension [ImportDiagnostic] {
  mutating func report(_ kind: ImportDiagnostic.Kind, _ subject: String, _ reason: String) {
    append(ImportDiagnostic(kind, subject, reason))
  }
}

/// A retained message that announces devices.
package struct Announcement: Hashable, Sendable {
  package var topic: String
  package var payload: [UInt8]

  /// The maximum payload size in bytes; `bridge/devices` of 500 devices has about 5 MB.
  static let largestPayload = 8 << 20

  package init(topic: String, payload: [UInt8]) {
    self.topic = topic
    self.payload = payload
  }

  package init(topic: String, text: String) {
    self.init(topic: topic, payload: Array(text.utf8))
  }

  /// Parses the payload.
  ///
  /// - Throws: ``Rejection`` when it is too large, or no JSON.
  func json() throws(Rejection) -> JSONValue {
    guard payload.count <= Self.largestPayload else {
      throw Rejection("\(payload.count) bytes; the limit is \(Self.largestPayload >> 20) MiB")
    }
    do throws(JSONParseError) {
      return try JSONParser.parse(payload.span)
    } catch {
      throw Rejection("not JSON: \(Excerpt.of(error.description, limit: 160))")
    }
  }
}

/// The rules for topics in announcements.
enum TopicName {
  /// Why commands cannot be published to `topic`; `nil` if they can.
  static func problem(_ topic: String) -> String? {
    guard topic.utf8.count <= 1000 else {
      return "a topic of \(topic.utf8.count) bytes; at most 1000 are accepted"
    }
    return Topic.problem(inName: topic)
  }
}
