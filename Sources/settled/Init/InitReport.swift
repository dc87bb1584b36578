// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Control
import Devices
import Import
import JSON
import MQTT
import Operations
import Values

/// The output of `settle init`.
struct InitReport {
  let json: Bool

  enum Verdict: String {
    case good = "ok"
    case warning = "note"
    case failed = "FAIL"
  }

  /// The most devices of a file that are listed.
  private static let mostListed = 12

  /// The broker that is tested next.
  func begin(_ url: String) {
    if !json { StandardOutput.print("Broker \(Excerpt.visible(url))") }
  }

  /// One finding.
  func check(_ name: String, _ verdict: Verdict, _ detail: String) {
    let detail = Excerpt.visible(detail)
    if json {
      print([
        "check": .string(name), "ok": .boolean(verdict != .failed), "detail": .string(detail),
      ])
    } else {
      let columns = [(verdict.rawValue, 6), (name, 13)].map { text, width in
        text + String(repeating: " ", count: max(1, width - text.count))
      }
      StandardOutput.print("  \(columns.joined())\(detail)")
    }
  }

  /// What the test of a broker that answers has found.
  func show(_ findings: BrokerFindings, of broker: BrokerConfiguration) {
    check("connection", .good, findings.software ?? "a broker that does not say what it is")
    if case .tls = broker.endpoint { check("tls", .good, "the broker's certificate is valid") }
    let isNew = findings.version == .v5
    check("protocol", .good, isNew ? "MQTT 5" : "MQTT 3.1.1; the broker does not speak MQTT 5")
    check("credentials", .good, broker.username.map { "accepted for '\($0)'" } ?? "none needed")
    let base = GatewayConfiguration().baseTopic
    let missing = findings.missingPermissions(baseTopic: base)
    if missing.isEmpty {
      check("permissions", .good, "may publish and subscribe below \(base)/")
    } else {
      check("permissions", .failed, missing.joined(separator: "; "))
    }
    if findings.hasGateway {
      check("gateway", .warning, "another gateway with the base topic '\(base)' is online")
    }
  }

  /// What is announced.
  func show(_ plan: ImportPlan) {
    if plan.files.isEmpty {
      check("devices", .warning, "no device that can be set is announced")
    }
    for file in plan.files {
      check("devices", .good, "\(file.source.title): \(file.counts)")
    }
    ImportReport(json: json, isDry: true).show(plan.diagnostics)
  }

  // MARK: - Files

  /// What would be written.
  func show(_ devices: InitDevices.Planned, settings: SetupSettings, in folder: SetupFolder) {
    guard !json else { return }
    StandardOutput.print("\n\(folder.settings)")
    for line in settings.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      StandardOutput.print(line.isEmpty ? "  |" : "  | \(line)")
    }
    if settings.hasPassword {
      StandardOutput.print("\(folder.password)\n  | the password, with mode 600")
    }
    var properties: [String: [String]] = [:]
    for entry in devices.registry.properties {
      let id = devices.registry.devices[entry.device].id
      properties[id, default: []].append(entry.property.id)
    }
    for file in devices.plan.files {
      StandardOutput.print(file.path)
      for change in file.changes.prefix(Self.mostListed) {
        let names = properties[change.path]?.joined(separator: ", ") ?? ""
        StandardOutput.print("  | \(change.path): \(names)")
      }
      if file.changes.count > Self.mostListed {
        StandardOutput.print("  | and \(file.changes.count - Self.mostListed) more")
      }
    }
    if devices.plan.files.isEmpty { StandardOutput.print("\(folder.devices), an empty folder") }
    StandardOutput.print("")
  }

  /// What was written, and what to do next.
  func showWritten(
    _ devices: InitDevices.Planned,
    in folder: SetupFolder,
    hasPassword: Bool
  ) {
    let steps = NextSteps(folder, registry: devices.registry)
    let own = [folder.settings] + (hasPassword ? [folder.password] : [])
    if json {
      for path in own { print(["file": .string(path), "written": true]) }
      for file in devices.plan.files {
        print([
          "file": .string(file.path), "written": true, "source": .string(file.source.rawValue),
          "devices": .integer(Int64(file.devices)), "groups": .integer(Int64(file.groups)),
          "properties": .integer(Int64(file.properties)),
        ])
      }
      print(["next": .string(steps.start)])
      return
    }
    let files = own + devices.plan.files.map(\.path)
    StandardOutput.print("Written: \(files.joined(separator: ", "))")
    if let place = steps.firstDevice {
      StandardOutput.print("\nNo device yet. A first one is a file such as \(place):\n")
      for line in NextSteps.example.split(separator: "\n") { StandardOutput.print("  \(line)") }
      StandardOutput.print("\nDevices that announce themselves later appear by themselves.")
    }
    StandardOutput.print("\nNext, start the gateway:\n\n  \(steps.start)\n")
    if let change = steps.change {
      StandardOutput.print("and in another terminal:\n\n  settle get\n  \(change)\n")
    }
    StandardOutput.print("If something does not work, \"settle status\" says why.")
    if steps.needsGroup {
      StandardOutput.print("Who may change values belongs to the group settle: adduser NAME settle")
    }
  }

  private func print(_ members: KeyValuePairs<String, JSONValue>) {
    StandardOutput.print(JSONWriter.text(.object(members)))
  }
}
