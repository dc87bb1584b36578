// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Control
import Import
import LastOut
import MQTT
import Operations
import Values

/// `settle init`: tests a broker, and writes settings and device files for it.
struct InitCommand: DaemonCommand {
  static let name = "init"
  static let summary = "Set up: test the broker, and write settings and device files."
  static let discussion = """
    Asks for the broker and tests it: whether it answers, by TLS if wanted, which version of MQTT \
    it speaks, whether it accepts the user name and password, and whether the gateway may publish \
    and subscribe below its base topic. Then it reads what Zigbee2MQTT, Home Assistant discovery, \
    Homie 5 and Tasmota announce, shows what it would write, and asks before it writes.

    It writes settle.yaml, device files as "settle import" does, and the password, if there is \
    one, into a file of its own with mode 600. The settings name a journal too, so that accepted \
    values survive a crash, and "import: auto", so that devices that are announced later appear \
    by themselves. An existing file is never replaced: the exit code is then 65. Without \
    --config the folder is /etc/settle for root, else ./config; and nothing is written while a \
    gateway runs that has settings already.

    With --yes it asks nothing. The broker is then --broker, else SETTLE_MQTT_URL, else \
    \(BrokerAddress.standard). User name and password come from the address \
    (mqtt://USER:PASSWORD@HOST), else from SETTLE_MQTT_USERNAME and SETTLE_MQTT_PASSWORD; other \
    users of the machine can see the arguments of a command, but not its environment.

    Devices hear nothing: one message goes to a topic of its own below settle/status/.
    """
  static let examples = [
    Example("settle init --config home", "Ask for everything, and write into the folder home."),
    Example("settle init --config home --yes", "Ask nothing, and take the standard broker."),
  ]
  static let parameters: [Parameter<Self>] = [
    .option(
      "broker",
      { $0.broker = $1 },
      value: "URL",
      help: "The broker, such as mqtt://192.168.1.5 or mqtts://anna@broker.example.org."
    ),
    .option(
      "config",
      { $0.config = $1 },
      value: "DIR",
      completion: .directories,
      help: "The folder to write; default: /etc/settle for root, else ./config."
    ),
    .option(
      "ca",
      { $0.ca = $1 },
      value: "FILE",
      completion: .files,
      help: "The authority of the broker's certificate, in PEM (default: the system's store)."
    ),
    .option(
      "cert",
      { $0.certificate = $1 },
      value: "FILE",
      completion: .files,
      help: "The client's certificate, in PEM."
    ),
    .option(
      "key",
      { $0.key = $1 },
      value: "FILE",
      completion: .files,
      help: "The key of that certificate."
    ),
    .flag("yes", short: "y", { $0.isUnattended = true }, help: "Ask nothing, and write."),
    .option(
      "timeout",
      { $0.timeout = $1 },
      value: "D",
      help: "How long to wait for the broker, and for its messages (default: 10s)."
    ),
    .flag("json", { $0.json = true }, help: "Print JSON, one object per line."),
  ]

  var broker: String?
  var config: String?
  var ca: String?
  var certificate: String?
  var key: String?
  var isUnattended = false
  var timeout: Duration = .seconds(10)
  var json = false

  func run() -> ExitCode {
    let folder = SetupFolder(config)
    if let mistake = mistake() {
      complain(mistake)
      return .usage
    }
    let present = folder.present
    guard present.isEmpty else {
      complain(refusal(present, folder))
      return .badInput
    }
    if let settings = settingsOfRunningGateway {
      let command = CommandAdvice.settle("import", settings: settings)
      complain(
        "a gateway runs already, with \(settings); \(command) adds devices to it,"
          + " or settle init --config DIR sets up another folder"
      )
      return .badInput
    }
    if let obstacle = folder.obstacle {
      complain("nothing can be written: \(obstacle); --config DIR sets up another folder")
      return .failed
    }
    guard isUnattended || InitDialog.isPossible else {
      complain("standard input is no terminal, so nobody can answer; --yes asks nothing")
      return .usage
    }
    let report = InitReport(json: json)
    do throws(InitEnd) {
      var broker = try InitBroker(command: self, folder: folder, report: report).tested()
      let devices = try InitDevices(command: self, folder: folder, report: report)
        .planned(for: &broker)
      report.show(devices, settings: broker.settings, in: folder)
      guard isUnattended || InitDialog.confirms("Write these files?") else {
        complain("nothing was written")
        return .failed
      }
      do throws(FileError) {
        try folder.write(
          settings: broker.settings.text,
          password: broker.password,
          devices.plan
        )
      } catch {
        complain("\(error); nothing was written")
        return .failed
      }
      report.showWritten(devices, in: folder, hasPassword: broker.password != nil)
      return .done
    } catch {
      for line in error.lines { complain(line) }
      return error.code
    }
  }

  private func mistake() -> String? {
    if timeout <= .zero { return "--timeout must be more than 0" }
    if let config, config.isEmpty || config.hasSuffix(".yaml") || config.utf8.contains(0) {
      return "--config names the folder to write, in which the settings are settle.yaml"
    }
    return nil
  }

  /// The settings file of the gateway that runs here; `nil` where the folder is chosen by the user.
  private var settingsOfRunningGateway: String? {
    guard config == nil, Environment["SETTLE_CONFIG"]?.isEmpty ?? true else { return nil }
    return (try? RunningGateway.report())?.files?.settings
  }

  private func refusal(_ present: [String], _ folder: SetupFolder) -> String {
    let verb = present.count == 1 ? "exists" : "exist"
    let advice =
      present.contains(folder.settings)
      ? "\(CommandAdvice.settle("import", settings: folder.settings)) adds devices to what is there"
      : "move \(present.count == 1 ? "it" : "them") away"
    return "\(present.joined(separator: ", ")) \(verb), and no file is replaced; \(advice),"
      + " or settle init --config DIR sets up another folder"
  }
}

/// The end of `settle init` before anything is written.
struct InitEnd: Error {
  var code: ExitCode
  /// What to print, each after the command's name.
  var lines: [String]

  init(_ code: ExitCode, _ lines: String...) {
    self.code = code
    self.lines = lines
  }

  /// Mistakes in files that are there already.
  init(_ failure: ConfigurationFailure) {
    code = .badConfiguration
    lines = failure.problems.map(\.description) + ["nothing was written"]
  }
}
