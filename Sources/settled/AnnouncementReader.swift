// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import Gateway
import Glibc
import Import
import MQTT
import Operations
import Values

/// Reads what is announced at the broker of some settings, for `import` and `init`.
final class AnnouncementReader {
  /// The silence after which all messages have arrived.
  private static let quiet: Duration = .seconds(1)

  /// Why nothing was read, or nothing follows from it, and with which code the command ends.
  struct Failure: Error {
    let code: ExitCode
    let reason: String
  }

  private let configuration: MQTTConfiguration
  private let timeout: Duration
  /// What follows where there is no connection and no settings file.
  private let settingsAdvice: String
  /// The URL of the broker that is in use; before, those of all.
  private var address: String

  /// `clientID` is completed by the process, because the gateway of these settings may be running.
  init(_ settings: GatewayConfiguration, clientID: String, timeout: Duration) {
    var broker = settings.mqtt
    broker.clientID = "\(clientID)-\(getpid())"
    var configuration = MQTTConfiguration(broker, fallbackID: clientID, limits: settings.limits)
    configuration.maximumPacket = 64 << 20
    // Leaves time for each of the other brokers, and for messages.
    configuration.connectDeadline = min(
      configuration.connectDeadline,
      timeout / (configuration.alternatives.count + 2)
    )
    self.configuration = configuration
    self.timeout = timeout
    address = configuration.brokers
    settingsAdvice = settings.settingsFile == nil ? ". \(CommandAdvice.noSettings)" : ""
  }

  /// Collects the retained messages of these topics until the broker sends no more; `onConnected`
  /// gets its address.
  func read(
    _ filters: [String],
    asking questions: ShellyQuestions? = nil,
    onConnected: @escaping (String) -> Void = { _ in }
  ) throws(Failure) -> [Announcement] {
    let collector: Collector
    do throws(OperationsError) {
      collector = try Collector(
        configuration,
        filters: filters,
        quiet: Self.quiet,
        timeout: timeout,
        loop: EventLoop(),
        log: Logger(level: .error)
      )
    } catch {
      throw Failure(code: .failed, reason: error.description)
    }
    collector.questions = questions
    address = configuration.brokers
    collector.onConnected = { [unowned self, unowned collector] in
      address = collector.endpoint
      onConnected(address)
    }
    return try judge(collector.collect(), collector)
  }

  /// Removes retained messages, unless a gateway carries the probe.
  func remove(
    _ topics: [String],
    probe: (topic: String, carried: String)
  ) throws(Failure) {
    address = configuration.brokers
    let outcome: Remover.Outcome
    do throws(OperationsError) {
      outcome = try Remover(
        configuration,
        topics: topics,
        probe: probe,
        wait: Self.quiet,
        timeout: timeout,
        loop: EventLoop(),
        log: Logger(level: .error)
      ).remove()
    } catch {
      throw Failure(code: .failed, reason: error.description)
    }
    switch outcome {
    case .removed: break
    case .isCarried:
      throw Failure(
        code: .unavailable,
        reason: "a gateway still carries announcements to \(probe.carried): restart it first,"
          + " or Home Assistant would lose its entities"
      )
    case .failed(let reason): throw noConnection(reason)
    }
  }

  /// That nothing is announced.
  func nothing(_ request: ImportPlan.Request) -> Failure {
    Failure(
      code: .unavailable,
      reason: "nothing is announced at \(address): no retained message on "
        + request.filters.joined(separator: ", ")
    )
  }

  private func noConnection(_ reason: String) -> Failure {
    Failure(
      code: .unavailable,
      reason: "no connection to \(address): \(reason)\(settingsAdvice)"
    )
  }

  private func judge(
    _ outcome: Collector.Outcome,
    _ collector: Collector
  ) throws(Failure) -> [Announcement] {
    switch outcome {
    case .complete: return collector.announcements
    case .timedOut(let isConnected):
      throw Failure(
        code: .timedOut,
        reason: isConnected
          ? "messages were still arriving after --timeout; nothing was written"
          : "no answer from \(address) within --timeout\(settingsAdvice)"
      )
    case .failed(let reason): throw noConnection(reason)
    case .tooMuch:
      throw Failure(
        code: .badInput,
        reason: "too much is announced for one import; settle import reads a part of it"
          + " with --only, --base or --prefix"
      )
    }
  }
}
