// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Devices
import Glibc
import Import
import LastOut
import Operations
import Values

/// `settle import`: writes device files for the devices that the broker announces.
struct ImportCommand: ConfiguredCommand {
  static let name = "import"
  static let summary = "Write device files for the devices that the broker announces."
  static let discussion = """
    Reads what Zigbee2MQTT (bridge/devices), Home Assistant's discovery topics, Homie 5 \
    ($description), Tasmota (tasmota/discovery) and, with --ask, Shelly devices announce, and \
    writes one file for each into the folder of device files, such as imported-zigbee2mqtt.yaml. \
    Everything that is skipped is listed with its reason.

    A second run keeps your edits, adds new devices, and lists devices that are gone. Devices that \
    another file in the folder already has are left to that file. With "import: auto" in the \
    settings a gateway that runs does the same by itself.

    --in-between is for automations that publish to zigbee2mqtt/NAME/set and cannot be changed: \
    Settle listens there, and Zigbee2MQTT moves to another base topic. It adds routes to the \
    settings file, and prints the three lines to change in Zigbee2MQTT. --undo removes the routes \
    and prints what to put back; a second --undo removes what is left at the broker.

    Nothing else is published, apart from the questions of --ask. The exit code is 65 if some \
    announcements could not be read.
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
        alone: "",
        help: "Write routes instead; TOPIC is the base topic that Zigbee2MQTT moves to "
          + "(default: that of the routes in the settings, else \(InBetween.standardInner))."
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
  /// The topic of `--in-between`; empty if it stands alone.
  var inner: String?
  var isUndone = false
  var timeout: Duration = .seconds(10)
  var json = false

  func run() -> ExitCode {
    if let mistake = mistake() {
      complain(mistake)
      return .usage
    }
    let overrides: ConfigurationLoader.Overrides
    do throws(RunningGateway.Unknown) {
      overrides = try self.overrides()
    } catch {
      complain("\(error.reason); nothing was written: name its settings with --config FILE")
      return .unavailable
    }
    let environment = Environment.all
    let (loaded, mistakes) = ConfigurationLoader.inspect(
      overrides,
      environment: environment,
      drafts: [:]
    )
    do throws(ConfigurationFailure) {
      guard let inner else {
        return try importDevices(loaded, mistakes, overrides, environment)
      }
      guard mistakes.isEmpty else { throw ConfigurationFailure(problems: mistakes) }
      return isUndone
        ? try undo(inner, loaded.gateway, overrides, environment)
        : try addRoutes(inner, loaded.gateway, overrides, environment)
    } catch {
      for problem in error.problems { StandardError.write(problem.description) }
      complain("nothing was written" + (mistakes.isEmpty ? "" : "; settle check reports the same"))
      return .badConfiguration
    }
  }

  private func mistake() -> String? {
    for (option, topic) in [("--base", base), ("--prefix", prefix), ("--in-between", inner)] {
      guard let topic, !(topic.isEmpty && option == "--in-between") else { continue }
      let ends = topic.hasPrefix("/") || topic.hasSuffix("/") ? "it starts or ends with /" : nil
      if let problem = Topic.problem(inName: topic) ?? ends {
        return "\(option): '\(Excerpt.of(topic))' is not a base topic: \(problem)"
      }
    }
    if isUndone, inner == nil { return "--undo: only with --in-between" }
    if timeout <= .zero { return "--timeout must be more than 0" }
    if inner != nil, let foreign = foreignToRoutes {
      return "\(foreign): does not go with --in-between, which writes no device files; with it go"
        + " --base, --prefix, --undo, --dry-run, --timeout, --config and --json"
    }
    if inner != nil, inner == base ?? "zigbee2mqtt" {
      return "--in-between: Zigbee2MQTT must move to a base topic other than \(inner ?? "")"
    }
    return nil
  }

  /// The first option that only the import of devices has.
  private var foreignToRoutes: String? {
    if only != nil { return "--only" }
    if asks { return "--ask" }
    return includesDiagnostic ? "--diagnostic" : nil
  }

  func request(_ settings: GatewayConfiguration) -> ImportPlan.Request {
    var request = ImportPlan.Request(settings, folder: settings.devicesDirectory)
    if let prefix { request.prefix = prefix }
    if let only { request.sources = [only] }
    if inner != nil { request.sources = [.zigbee2mqtt] }
    request.asksShelly = asks && request.sources.contains(.shelly)
    request.base = base
    request.includesDiagnostic = includesDiagnostic
    return request
  }

  // MARK: - Device files

  private func importDevices(
    _ loaded: LoadedConfiguration,
    _ mistakes: [ConfigurationProblem],
    _ overrides: ConfigurationLoader.Overrides,
    _ environment: [String: String]
  ) throws(ConfigurationFailure) -> ExitCode {
    let folder = loaded.gateway.devicesDirectory
    let planner = ImportPlanner(overrides, environment: environment, folder: folder)
    let present: [ImportSource: ImportPlan.ExistingFile]
    do throws(FileError) {
      present = try planner.present()
    } catch {
      // A link that leads nowhere is a mistake in the device files too.
      guard mistakes.isEmpty || error.isLink else {
        throw ConfigurationFailure(problems: mistakes)
      }
      complain(error.description)
      return .failed
    }
    guard mistakes.isEmpty else { throw ConfigurationFailure(problems: mistakes) }
    let request = request(loaded.gateway)
    let announcements: [Announcement]
    do throws(AnnouncementReader.Failure) {
      let reader = reader(loaded.gateway)
      announcements = try read(
        request.filters + request.bridgeFilters,
        with: reader,
        asking: request.asksShelly ? ShellyQuestions() : nil
      )
      guard announcements.contains(where: request.includes) else { throw reader.nothing(request) }
    } catch {
      complain(error.reason)
      return error.code
    }
    let plan = try planner.plan(
      announcements,
      request,
      present: present,
      devices: loaded.registry,
      templates: loaded.sources.map(\.template)
    )
    return write(plan, into: folder)
  }

  /// A reader of what is announced at the broker of these settings.
  func reader(_ settings: GatewayConfiguration) -> AnnouncementReader {
    AnnouncementReader(settings, clientID: "settle-import", timeout: timeout)
  }

  /// Reads what is announced, and says where.
  func read(
    _ filters: [String],
    with reader: AnnouncementReader,
    asking questions: ShellyQuestions? = nil
  ) throws(AnnouncementReader.Failure) -> [Announcement] {
    try reader.read(filters, asking: questions) { [json] address in
      if !json { StandardError.write("Reading what is announced at \(address)") }
    }
  }

  private func write(_ plan: ImportPlan, into folder: String) -> ExitCode {
    let report = ImportReport(json: json, isDry: isDry)
    do throws(FileError) {
      if isDry {
        plan.files.forEach(report.show)
      } else {
        try plan.write(into: folder, onWritten: report.show)
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
