// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
package import MQTT
import Operations

/// Tests whether a gateway can work with a broker, and finds out why it cannot.
package struct BrokerTest {
  private let configuration: MQTTConfiguration
  private let baseTopic: String
  private let timeout: Duration

  /// `configuration` is that of the gateway, for MQTT 5.
  package init(_ configuration: MQTTConfiguration, baseTopic: String, timeout: Duration) {
    var configuration = configuration
    configuration.allowsOlderVersion = false
    self.configuration = configuration
    self.baseTopic = baseTopic
    self.timeout = timeout
  }

  /// Connects by MQTT 5, and by 3.1.1 if the broker does not speak that.
  ///
  /// Blocks for up to the timeout, and twice as long where the reason of a failure must be
  /// searched.
  package func run() throws(BrokerFailure) -> BrokerFindings {
    let end: BrokerProbe.Ended
    switch try attempt(configuration) {
    case .success(let found): return found
    case .failure(let found): end = found
    }
    // A broker of before MQTT 5 refuses the version or closes the connection.
    if end.cause == .version || end.cause == .closed {
      var older = configuration
      older.version = .v311
      switch try attempt(older) {
      case .success(let found): return found
      case .failure(let other): if other.isAnswer { throw failure(other) }
      }
    }
    throw failure(end)
  }

  private func attempt(
    _ configuration: MQTTConfiguration
  ) throws(BrokerFailure) -> Result<BrokerFindings, BrokerProbe.Ended> {
    do throws(OperationsError) {
      let probe = try BrokerProbe(
        configuration,
        baseTopic: baseTopic,
        timeout: timeout,
        loop: EventLoop()
      )
      return probe.run()
    } catch {
      throw BrokerFailure(reason: error.description)
    }
  }

  /// The reason of a failure; for one without a clear reason, what the port speaks.
  private func failure(_ end: BrokerProbe.Ended) -> BrokerFailure {
    var failure = BrokerFailure(reason: end.reason)
    failure.isTimeout = end.cause == nil
    if end.cause == .credentials {
      failure.isAboutCredentials = true
      // The settings that the reason names do not exist yet.
      failure.reason = String(end.reason.prefix { $0 != ";" })
      failure.advice =
        configuration.username == nil
        ? "it may want a user name and a password: mqtt://USER:PASSWORD@HOST"
        : "is the password of '\(configuration.username ?? "")' right?"
    }
    switch configuration.endpoint {
    case .tcp(let host, let port) where end.cause == .closed || end.cause == .silent:
      guard TLSGreeting.isAnswered(host: host, port: port) else { break }
      failure.reason = "this port speaks TLS"
      failure.advice = "use mqtts://\(Self.authority(host, port))"
    case .tls(let host, let port) where !end.isAnswer && speaksPlainly(host, port):
      failure.reason = "the broker does not speak TLS at this port"
      failure.advice = "use mqtt://\(Self.authority(host, port))"
    case .tcp, .tls, .unix: break
    }
    return failure
  }

  /// Whether a broker answers at the port without TLS; no password is sent there.
  private func speaksPlainly(_ host: String, _ port: Int) -> Bool {
    guard !TLSGreeting.isAnswered(host: host, port: port) else { return false }
    var plain = MQTTConfiguration(
      endpoint: .tcp(host: host, port: port),
      clientID: configuration.clientID
    )
    plain.connectDeadline = min(configuration.connectDeadline, .seconds(3))
    guard let result = try? attempt(plain) else { return false }
    switch result {
    case .success: return true
    case .failure(let end): return end.isAnswer
    }
  }

  private static func authority(_ host: String, _ port: Int) -> String {
    host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }
}

extension BrokerProbe.Ended {
  /// Whether it is a broker's answer to CONNECT.
  fileprivate var isAnswer: Bool {
    switch cause {
    case .credentials, .version, .clientID, .takenOver, .refused: true
    case .unreachable, .unresolved, .certificateName, .certificate, .notMQTT, .closed, .silent,
      .dropped, nil:
      false
    }
  }
}

/// What the test of a broker has found.
package struct BrokerFindings: Hashable, Sendable {
  /// The version of the protocol that the broker speaks.
  package var version = MQTTConfiguration.ProtocolVersion.v5
  /// What the broker calls itself, such as `mosquitto version 2.0.11`; `nil` if it does not say.
  package var software: String?
  /// Topic filters that the client must not subscribe to, with the broker's reason.
  package var refusedFilters: [String: String] = [:]
  /// Why the client must not publish; `nil` if it may, or if the broker does not say.
  package var publishRefusal: String?
  /// Whether a message to a topic below the base topic came back.
  package var hearsItself = false
  /// Whether a gateway with the same base topic is online.
  package var hasGateway = false

  /// What the client may not do below the base topic; empty if it may do everything.
  package func missingPermissions(baseTopic: String) -> [String] {
    var missing = refusedFilters.sorted { $0.key < $1.key }.map {
      "may not subscribe to \($0.key): \($0.value)"
    }
    if let publishRefusal {
      missing.append("may not publish below \(baseTopic)/: \(publishRefusal)")
    } else if !hearsItself, missing.isEmpty {
      missing.append(
        "a message below \(baseTopic)/ does not come back, so it may not publish or not receive there"
      )
    }
    return missing
  }
}

/// Why a broker cannot be used.
package struct BrokerFailure: Error, Hashable, Sendable {
  package var reason: String
  /// What to change, if that is known.
  package var advice: String?
  /// Whether another user name or password may help.
  package var isAboutCredentials = false
  /// Whether the time for an answer has passed.
  package var isTimeout = false
}
