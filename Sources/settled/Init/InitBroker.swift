// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Control
import Devices
import Gateway
import Glibc
import Import
import MQTT
import Operations
import Values

/// The broker of `settle init`: asked for, tested, and asked for again if the test fails.
struct InitBroker {
  /// A broker that works.
  struct Tested {
    var settings: SetupSettings
    var password: String?
    var findings: BrokerFindings
    var configuration: GatewayConfiguration
  }

  let command: InitCommand
  let folder: SetupFolder
  let report: InitReport

  /// The first broker that passes the test.
  ///
  /// - Throws: ``InitEnd`` when none does and nobody can name another one.
  func tested() throws(InitEnd) -> Tested {
    let variable = Self.variable("SETTLE_MQTT_URL").map { $0.prefix { $0 != " " && $0 != "," } }
    let given = command.broker ?? variable.map(String.init)
    var address = BrokerAddress(given ?? BrokerAddress.standard)
    if given == nil, !command.isUnattended { address = try asked(instead: address) }
    address.username = address.username ?? Self.variable("SETTLE_MQTT_USERNAME")
    address.password = address.password ?? Self.variable("SETTLE_MQTT_PASSWORD")
    while true {
      do throws(Rejected) {
        return try test(address)
      } catch {
        guard !command.isUnattended else { throw error.end }
        for line in error.end.lines { command.complain(line) }
        if error.wantsCredentials {
          (address.username, address.password) = try askedForCredentials(address)
        } else {
          address = try asked(instead: address)
        }
      }
    }
  }

  // MARK: - The test

  /// A broker that cannot be used.
  private struct Rejected: Error {
    var end: InitEnd
    var wantsCredentials = false
  }

  private func test(_ address: BrokerAddress) throws(Rejected) -> Tested {
    var settings = settings(address)
    let loaded = try load(settings, address.password)
    let limit = command.timeout
    var configuration = MQTTConfiguration(
      loaded.mqtt,
      fallbackID: "settle-init-\(getpid())",
      limits: loaded.limits
    )
    configuration.connectDeadline = min(configuration.connectDeadline, limit)
    report.begin(address.url)
    let test = BrokerTest(configuration, baseTopic: loaded.baseTopic, timeout: limit)
    let findings: BrokerFindings
    do throws(BrokerFailure) {
      findings = try test.run()
    } catch {
      let text = error.reason + (error.advice.map { "; \($0)" } ?? "")
      report.check("connection", .failed, text)
      throw Rejected(
        end: InitEnd(
          error.isTimeout ? .timedOut : .unavailable,
          "the broker at \(address.url) cannot be used: \(text)"
        ),
        wantsCredentials: error.isAboutCredentials
      )
    }
    settings.usesMQTT5 = findings.version == .v5
    report.show(findings, of: loaded.mqtt)
    let missing = findings.missingPermissions(baseTopic: loaded.baseTopic)
    guard missing.isEmpty else {
      let who = address.username.map { "the user '\($0)'" } ?? "a client without a user name"
      throw Rejected(
        end: InitEnd(
          .unavailable,
          "\(who) \(missing.joined(separator: "; ")). Allow reading and writing below"
            + " \(loaded.baseTopic)/#, and the topics of the devices"
        )
      )
    }
    var tested = loaded
    tested.mqtt.usesMQTT5 = settings.usesMQTT5
    return Tested(
      settings: settings,
      password: address.password,
      findings: findings,
      configuration: tested
    )
  }

  private func settings(_ address: BrokerAddress) -> SetupSettings {
    var settings = SetupSettings(url: address.url)
    settings.username = address.username
    settings.hasPassword = address.password != nil
    settings.ca = command.ca.map(WorkingFolder.absolute)
    settings.certificate = command.certificate.map(WorkingFolder.absolute)
    settings.key = command.key.map(WorkingFolder.absolute)
    settings.journal = folder.isSystem ? "/var/lib/settle/journal.db" : "journal.db"
    settings.schema = InitDevices.schema(.settings, in: folder.path)
    return settings
  }

  /// The settings as the gateway reads them.
  private func load(
    _ settings: SetupSettings,
    _ password: String?
  ) throws(Rejected) -> GatewayConfiguration {
    do throws(ConfigurationFailure) {
      var overrides = ConfigurationLoader.Overrides()
      overrides.config = folder.settings
      let loaded = try ConfigurationLoader.load(
        overrides,
        // No other variable counts, because a service has none.
        environment: password.map { ["SETTLE_MQTT_PASSWORD": $0] } ?? [:],
        drafts: [folder.settings: Array(settings.text.utf8)]
      )
      for warning in loaded.warnings where warning.file == folder.settings {
        StandardError.write("warning: \(Excerpt.visible(warning.message))")
      }
      return loaded.gateway
    } catch {
      let own = error.problems.filter { $0.file == folder.settings }
      guard let first = own.first else { throw Rejected(end: InitEnd(error)) }
      let question = first.suggestion.map { "; did you mean '\($0)'?" } ?? ""
      throw Rejected(
        end: InitEnd(.usage, Excerpt.visible("the broker's \(first.message)\(question)"))
      )
    }
  }

  // MARK: - Questions

  private func asked(instead address: BrokerAddress) throws(InitEnd) -> BrokerAddress {
    guard let text = InitDialog.answer("Broker [\(address.url)]: ") else {
      throw InitEnd(.unavailable, "nothing was written")
    }
    guard !text.isEmpty else { return address }
    return BrokerAddress(text)
  }

  private func askedForCredentials(
    _ address: BrokerAddress
  ) throws(InitEnd) -> (String?, String?) {
    let known = address.username.map { " [\($0)]" } ?? ""
    guard let name = InitDialog.answer("User name\(known): "),
      let password = InitDialog.secret("Password (not shown): ")
    else { throw InitEnd(.unavailable, "nothing was written") }
    return (name.isEmpty ? address.username : name, password.isEmpty ? nil : password)
  }

  private static func variable(_ name: String) -> String? {
    Environment[name].flatMap { $0.isEmpty ? nil : $0 }
  }
}

/// Questions at the terminal, on standard error, and their answers.
enum InitDialog {
  /// Whether somebody can answer.
  static var isPossible: Bool { isatty(STDIN_FILENO) == 1 }

  /// The answer to a question, without blanks around it; `nil` at the end of the input.
  static func answer(_ question: String) -> String? {
    StandardError.show(question)
    guard let line = readLine() else {
      StandardError.write("")
      return nil
    }
    return String(line.trimmed)
  }

  /// An answer that is not shown while it is typed; `nil` at the end of the input.
  static func secret(_ question: String) -> String? {
    StandardError.show(question)
    var mode = termios()
    let isKnown = unsafe tcgetattr(STDIN_FILENO, &mode) == 0
    var silent = mode
    silent.c_lflag &= ~tcflag_t(ECHO)
    if isKnown { unsafe tcsetattr(STDIN_FILENO, TCSADRAIN, &silent) }
    let line = readLine()
    if isKnown { unsafe tcsetattr(STDIN_FILENO, TCSADRAIN, &mode) }
    StandardError.write("")
    return line
  }

  /// Whether the answer is yes, which an empty one is.
  static func confirms(_ question: String) -> Bool {
    while let text = answer("\(question) [Y/n] ")?.lowercased() {
      if ["", "y", "yes"].contains(text) { return true }
      if ["n", "no"].contains(text) { return false }
    }
    return false
  }
}

/// The devices of `settle init`: what is announced at the broker, as files to write.
struct InitDevices {
  /// Files to write, and all devices that the gateway has then.
  struct Planned {
    var plan: ImportPlan
    var registry: Registry
  }

  let command: InitCommand
  let folder: SetupFolder
  let report: InitReport

  /// Reads the announcements and plans the files; a lane for Zigbee is added to the settings.
  ///
  /// - Throws: ``InitEnd`` when they cannot be read, or files in the folder have mistakes.
  func planned(for broker: inout InitBroker.Tested) throws(InitEnd) -> Planned {
    let reader = AnnouncementReader(
      broker.configuration,
      clientID: "settle-init",
      timeout: command.timeout
    )
    var request = ImportPlan.Request()
    request.ownBase = broker.configuration.baseTopic
    request.schema = Self.schema(.devices, in: folder.devices)
    let announcements: [Announcement]
    do throws(AnnouncementReader.Failure) {
      announcements = try reader.read(request.filters)
    } catch {
      throw InitEnd(error.code, error.reason)
    }
    if announcements.contains(where: { $0.topic.hasSuffix("/bridge/devices") }) {
      broker.settings.hasZigbee = true
      request.lanes = ["zigbee"]
    }
    do throws(ConfigurationFailure) {
      let planner = planner(broker)
      let plan = try planner.plan(
        announcements,
        request,
        present: [:],
        devices: planner.devices()
      )
      report.show(plan)
      return Planned(plan: plan, registry: try planner.loaded(plan).registry)
    } catch {
      throw InitEnd(error)
    }
  }

  /// A planner for files that do not exist yet, the settings included.
  private func planner(_ broker: InitBroker.Tested) -> ImportPlanner {
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = folder.settings
    return ImportPlanner(
      overrides,
      // No other variable counts, because a service has none.
      environment: broker.password.map { ["SETTLE_MQTT_PASSWORD": $0] } ?? [:],
      folder: folder.devices,
      settings: [folder.settings: Array(broker.settings.text.utf8)]
    )
  }

  /// The schema that files in `folder` name.
  static func schema(_ name: SchemaPlace.Name, in folder: String) -> String? {
    SchemaPlace.find(name, forFilesIn: folder, program: SchemaPlace.program)
  }
}
