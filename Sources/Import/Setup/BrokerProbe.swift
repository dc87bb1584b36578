// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import MQTT
import Operations
import Values

/// One connection to a broker that tries what a gateway does there.
///
/// It subscribes to the command topics, and publishes one empty message, which is not retained, to
/// a topic of its own below `BASE/status/`. It publishes nothing to devices.
final class BrokerProbe {
  /// How long the message may take to come back, and answers to subscriptions may take.
  private static let patience: Duration = .seconds(2)
  /// Where brokers say what they are.
  private static let softwareTopics = ["$SYS/broker/version", "$SYS/brokers/+/version"]

  private let loop: EventLoop
  private let client: MQTTClient
  private let status: String
  /// The topic of the message that must come back.
  private let echo: String
  private let deadline: Moment
  private var timer: LoopTimer?
  /// Filters without an answer.
  private var unanswered: Set<String>
  private var hasPublished = false
  private var isPublishAnswered = false
  private var findings = BrokerFindings()
  private var failure: Ended?
  private var isConnected = false
  private var isOver = false

  /// - Throws: ``OperationsError`` when the client or the timer cannot be created.
  init(
    _ configuration: MQTTConfiguration,
    baseTopic: String,
    timeout: Duration,
    loop: EventLoop
  ) throws(OperationsError) {
    self.loop = loop
    status = "\(baseTopic)/status"
    echo = "\(status)/\(configuration.clientID)"
    deadline = EventLoop.now().advanced(by: timeout)
    findings.version = configuration.version
    let commands = ["set", "step", "toggle", "flush", "cancel"].map { "\(baseTopic)/+/+/\($0)" }
    unanswered = Set(commands + ["\(baseTopic)/+/set", echo])
    client = try MQTTClient(configuration: configuration, loop: loop, log: Logger(level: .error))
    timer = try loop.makeTimer(named: "testing the broker") { [unowned self] in end() }
    let needed = unanswered.map { Subscription(filter: $0, wantsRetained: false) }
    let welcome = (Self.softwareTopics + [status]).map {
      Subscription(filter: $0, wantsRetained: true)
    }
    // Their retained messages come before the message of this probe.
    client.subscribe(welcome + needed.sorted { $0.filter < $1.filter })
    client.onState = { [unowned self] state in changed(state) }
    client.onSubscribed = { [unowned self] (filter, refusal) in answered(filter, refusal) }
    client.onOutcome = { [unowned self] (_, outcome) in published(outcome) }
    client.onMessage = { [unowned self] (topic, payload, _) in
      let name = unsafe topic.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
      let text = unsafe payload.withUnsafeBufferPointer {
        unsafe String(decoding: $0.prefix(200), as: UTF8.self)
      }
      received(name, text)
    }
  }

  /// Runs the loop until everything is known, the connection fails or the time is over.
  func run() -> Result<BrokerFindings, Ended> {
    client.start()
    timer?.arm(at: deadline)
    loop.run()
    if let failure { return .failure(failure) }
    return isConnected ? .success(findings) : .failure(Ended())
  }

  /// Why there are no findings; without a cause, the time was over.
  struct Ended: Error {
    var cause: ConnectionTrouble?
    var reason = "no answer within the time for it"
  }

  private func changed(_ state: MQTTClient.State) {
    switch state {
    case .connected:
      isConnected = true
      timer?.arm(at: min(deadline, EventLoop.now().advanced(by: Self.patience)))
    case .waiting:
      if !isOver, let trouble = client.trouble {
        failure = Ended(cause: trouble.cause, reason: trouble.reason)
      }
      end()
    case .idle: loop.stop()
    case .connecting: break
    }
  }

  private func answered(_ filter: String, _ refusal: String?) {
    guard unanswered.remove(filter) != nil else { return }
    if let refusal { findings.refusedFilters[filter == echo ? "\(status)/+" : filter] = refusal }
    guard unanswered.isEmpty, !hasPublished else { return }
    hasPublished = true
    let isSent = client.publish(topic: echo, payload: [], token: MQTTClient.Token(number: 1))
    if isSent {
      timer?.arm(at: min(deadline, EventLoop.now().advanced(by: Self.patience)))
    } else {
      end()
    }
  }

  private func published(_ outcome: PublishOutcome) {
    isPublishAnswered = true
    if case .refused(let reason) = outcome {
      findings.publishRefusal = reason
      end()
    } else if findings.hearsItself {
      end()
    }
  }

  private func received(_ topic: String, _ text: String) {
    if topic == echo {
      findings.hearsItself = true
      if isPublishAnswered { end() }
    } else if topic == status {
      findings.hasGateway = text == "online"
    } else if topic.hasPrefix("$SYS/"), findings.software == nil {
      findings.software = text.filter { !$0.isNewline }
    }
  }

  private func end() {
    guard !isOver else { return }
    isOver = true
    timer?.cancel()
    timer = nil
    client.close()
    if case .idle = client.state { loop.stop() }
  }
}

/// A broker's address as people type it: `broker.lan`, `mqtt://anna:secret@broker.lan:1883`.
package struct BrokerAddress: Hashable, Sendable {
  /// The address for the settings, without user name and password.
  package var url: String
  package var username: String?
  package var password: String?

  /// The broker of a machine that runs one.
  package static let standard = "mqtt://127.0.0.1:1883"

  /// Takes user name and password out of an address, and adds `mqtt://` if no scheme is given.
  ///
  /// The rest of the address is checked as in the settings. In user name and password, `%` and two
  /// hexadecimal digits stand for a byte.
  package init(_ text: String) {
    guard !text.hasPrefix("unix:") else {
      url = text
      return
    }
    let start = text.firstPlace(of: "://")?.upperBound
    let scheme = start.map { String(text[..<$0]) } ?? "mqtt://"
    var rest = start.map { text[$0...] } ?? text[...]
    // A password may contain "@"; a host cannot.
    let authority = rest.prefix { $0 != "/" }
    if let at = authority.lastIndex(of: "@") {
      let user = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      username = user.first.flatMap { $0.isEmpty ? nil : Self.decoded($0) }
      password = user.count > 1 && !user[1].isEmpty ? Self.decoded(user[1]) : nil
      rest = rest[rest.index(after: at)...]
    }
    url = scheme + rest
  }

  /// The text with each `%` and its two digits replaced; unchanged if the result is not UTF-8.
  private static func decoded(_ text: Substring) -> String {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      let digits = String(decoding: rest.prefix(2), as: UTF8.self)
      if byte == UInt8(ascii: "%"), digits.utf8.count == 2, let value = UInt8(digits, radix: 16) {
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self) ?? String(text)
  }
}
