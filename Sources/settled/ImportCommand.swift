// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Glibc
import Import
import LastOut
import MQTTTopics
import Operations
import Values

/// `settle import`: writes device files for the devices that the broker announces.
struct ImportCommand: ConfiguredCommand {
  static let name = "import"
  static let summary = "Write device files for the devices that the broker announces."
  static let discussion = """
    Reads what Zigbee2MQTT (bridge/devices), Home Assistant's discovery topics, Homie 5 \
    ($description), Tasmota (tasmota/discovery) and, with --ask, Shelly devices announce, and \
    writes one file for each into the folder of device files, such as imported-zigbee2mqtt.yaml. Everything that is skipped is listed with its reason.

    A second run keeps your edits, adds new devices, and lists devices that are gone. Devices that \
    another file in the folder already has are left to that file.

    --in-between is for automations that publish to zigbee2mqtt/NAME/set and cannot be changed: \
    Settle listens there, and Zigbee2MQTT moves to another base topic. It adds routes to the \
    settings file, and prints the three lines to change in Zigbee2MQTT. --undo removes the routes \
    and prints what to put back; a second --undo removes what is left at the broker.

    Nothing else is published, apart from the questions of --ask. The exit code is 65 if some announcements could not be read.
    """
  static let examples = [
    Example("settle import --dry-run", "Show what would be written, as a diff."),
    Example("settle import && settle check", "Import everything that is announced."),
    Example(
      "settle import --only zigbee2mqtt --devices ./devices",
      "Import from one source into another folder."
    ),
    Example(
      "settle import --in-between --dry-run",
      "Show the routes for automations that cannot change."
    ),
    Example("settle import --in-between --undo", "Take Settle out from in between again."),
  ]
  static let parameters: [Parameter<Self>] =
    configurationParameters
    + [
      .flag("dry-run", short: "n", { $0.isDry = true }, help: "Write nothing; print a diff."),
      .option(
        "only",
        { $0.only = $1 },
        value: ImportSource.allCases.map(\.rawValue).joined(separator: "|"),
        completion: .words(ImportSource.allCases.map(\.rawValue)),
        help: "Import only from this source."
      ),
      .option(
        "base",
        { $0.base = $1 },
        value: "TOPIC",
        help: "The base topic of one Zigbee2MQTT (default: all that are found)."
      ),
      .option(
        "prefix",
        { $0.prefix = $1 },
        value: "TOPIC",
        help: "Home Assistant's discovery prefix (default: homeassistant)."
      ),
      .flag(
        "diagnostic",
        { $0.includesDiagnostic = true },
        help: "Import readings about the devices themselves too, such as linkquality."
      ),
      .flag(
        "ask",
        { $0.asks = true },
        help: "Ask Shelly devices to announce themselves."
      ),
      .option(
        "in-between",
        { $0.inner = $1 },
        value: "TOPIC",
        alone: "zigbee2mqtt-direct",
        help: "Write routes instead; TOPIC is the base topic that Zigbee2MQTT moves to "
          + "(default: zigbee2mqtt-direct)."
      ),
      .flag("undo", { $0.isUndone = true }, help: "With --in-between: undo it."),
      .option(
        "timeout",
        { $0.timeout = $1 },
        value: "D",
        help: "How long to wait for the broker and its messages (default: 10s)."
      ),
      .flag("json", { $0.json = true }, help: "Print JSON, one object per line."),
    ]

  var config: String?
  var devices: String?
  var isDry = false
  var only: ImportSource?
  var base: String?
  var prefix: String?
  var includesDiagnostic = false
  var asks = false
  var inner: String?
  var isUndone = false
  var timeout: Duration = .seconds(10)
  var json = false

  func run() -> ExitCode {
    if let mistake = mistake() {
      complain(mistake)
      return .usage
    }
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = config
    overrides.devices = devices
    let environment = Environment.all
    do throws(ConfigurationFailure) {
      let loaded = try ConfigurationLoader.load(overrides, environment: environment, drafts: [:])
      if isUndone, let inner {
        return try undo(inner: inner, loaded.gateway, overrides, environment)
      }
      let request = request(loaded.gateway)
      let reader = AnnouncementReader(loaded.gateway, clientID: "settle-import", timeout: timeout)
      let announcements: [Announcement]
      do throws(AnnouncementReader.Failure) {
        let bridge = inner.map { InBetweenProgress(inner: $0, prefix: request.prefix).bridgeTopic }
        let filters = request.filters + (bridge.map { [$0] } ?? [])
        let questions = request.asksShelly ? ShellyQuestions() : nil
        announcements = try reader.read(filters, asking: questions) { [json] address in
          if !json { StandardError.write("Reading what is announced at \(address)") }
        }
        guard !announcements.isEmpty else { throw reader.nothing(request) }
      } catch {
        complain(error.reason)
        return error.code
      }
      if let inner {
        return try routes(
          announcements,
          inner: inner,
          prefix: request.prefix,
          reader,
          overrides,
          environment
        )
      }
      let planner = ImportPlanner(
        overrides,
        environment: environment,
        folder: loaded.gateway.devicesDirectory
      )
      return try files(announcements, request, planner, loaded.gateway.devicesDirectory)
    } catch {
      for problem in error.problems { StandardError.write(problem.description) }
      complain("nothing was written; settle check reports the same")
      return .badConfiguration
    }
  }

  private func mistake() -> String? {
    for (option, topic) in [("--base", base), ("--prefix", prefix), ("--in-between", inner)] {
      guard let topic else { continue }
      let ends = topic.hasPrefix("/") || topic.hasSuffix("/") ? "it starts or ends with /" : nil
      if let problem = Topic.problem(inName: topic) ?? ends {
        return "\(option): '\(Excerpt.of(topic))' is not a base topic: \(problem)"
      }
    }
    if isUndone, inner == nil { return "--undo: only with --in-between" }
    if timeout <= .zero { return "--timeout must be more than 0" }
    if inner != nil, inner == base ?? "zigbee2mqtt" {
      return "--in-between: Zigbee2MQTT must move to a base topic other than \(inner ?? "")"
    }
    return nil
  }

  private func request(_ settings: GatewayConfiguration) -> ImportPlan.Request {
    var request = ImportPlan.Request()
    request.prefix = prefix ?? settings.discovery?.prefix ?? "homeassistant"
    if let only { request.sources = [only] }
    if inner != nil { request.sources = [.zigbee2mqtt] }
    request.asksShelly = asks && request.sources.contains(.shelly)
    request.base = base
    request.includesDiagnostic = includesDiagnostic
    request.ownBase = settings.baseTopic
    request.lanes = Set(settings.lanes.keys)
    request.schema = SchemaPlace.find(
      forFilesIn: settings.devicesDirectory,
      program: SchemaPlace.program
    )
    request.recordRoutes(settings.routes)
    return request
  }

  // MARK: - Device files

  private func files(
    _ announcements: [Announcement],
    _ request: ImportPlan.Request,
    _ planner: ImportPlanner,
    _ folder: String
  ) throws(ConfigurationFailure) -> ExitCode {
    let present: [ImportSource: ImportPlan.ExistingFile]
    do throws(FileError) {
      present = try planner.present()
    } catch {
      complain(error.description)
      return .failed
    }
    let others = try planner.others()
    let plan = try planner.plan(announcements, request, present: present, others: others)
    let report = ImportReport(json: json, isDry: isDry)
    do throws(FileError) {
      if !isDry, plan.files.contains(where: \.isChanged) { try AtomicFile.makeFolder(folder) }
      for file in plan.files {
        if !isDry { try file.write() }
        report.show(file)
      }
    } catch {
      complain(error.description)
      return .failed
    }
    report.show(plan.diagnostics)
    if plan.files.isEmpty { complain("no device that can be imported is announced") }
    return plan.diagnostics.contains { $0.kind == .refused } ? .badInput : .done
  }
}
