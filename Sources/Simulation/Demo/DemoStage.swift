// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import Devices
import Gateway
import GatewayCore
import JSON
import JSONParsing
import LastOut
package import Operations
import PrivateBroker

/// The demo: a private broker as a process, and on one event loop the gateway, the simulated devices
/// and the hands.
///
/// The hands and the devices speak MQTT over connections of their own, so the gateway sees what it
/// would see in a home.
package final class DemoStage {
  package struct Options: Sendable {
    /// `nil`: the standard home.
    package var convention: ConventionName?
    /// `nil`: the house's own script.
    package var script: [UInt8]?
    package var speed = 1.0
    /// Goes on after the script until a signal comes.
    package var keeps = false
    package var logLevel = Logger.Level.warning

    package init() {}
  }

  /// How far the evening has come.
  private enum Stage {
    /// The hands play, or what they asked for is still on its way.
    case playing
    /// The script is over and the summary shown; people may play on.
    case kept
    /// The gateway flushes and ends.
    case leaving
    /// The gateway has ended; devices may still report what it sent last.
    case listening
  }

  /// How long devices get to come to rest after the last change.
  static let patience = Duration.seconds(20)

  let options: Options
  let house: DemoHouse
  let broker: PrivateBroker
  let loop: EventLoop
  let gateway: Gateway
  let registry: Registry
  let script: DemoScript
  let driver: DeviceDriver
  let hands: Hands
  let socket: String
  /// Where the panel is.
  let panel: PortReservation
  var ledger: DemoLedger
  var screen: DemoScreen
  var start = Moment.zero
  private let handsLink: DemoLink
  private let devicesLink: DemoLink
  private var pulse: LoopTimer?
  private var deadline: Moment?
  private var stage = Stage.playing
  private var hasSummary = false
  private var exitCode: Int32 = 1

  /// Starts the broker and puts everything in its place.
  ///
  /// - Throws: ``DemoError`` when something that the demo needs is not there.
  package init(_ options: Options, screen: DemoScreen) throws(DemoError) {
    self.options = options
    self.screen = screen
    house = options.convention.map { .with($0) } ?? .standard
    do {
      broker = try PrivateBroker()
      try broker.start()
      // With --keep people open it: an address that is easy to remember.
      panel = try PortReservation(preferring: options.keeps ? 8484 : 0)
    } catch {
      throw DemoError("\(error)")
    }
    socket = broker.directory + "/settle.sock"
    let configuration = try Self.configuration(
      house,
      ports: (broker.port, panel.port),
      folder: broker.directory,
      socket
    )
    registry = configuration.registry
    ledger = DemoLedger(registry: registry)
    script = if let text = options.script { try Self.script(text, registry) } else { house.script }
    do throws(OperationsError) {
      loop = try EventLoop()
      gateway = try Gateway(
        configuration: configuration,
        loop: loop,
        log: Logger(level: options.logLevel)
      )
      handsLink = try DemoLink(name: "hands", port: broker.port, loop: loop)
      devicesLink = try DemoLink(name: "devices", port: broker.port, loop: loop)
      driver = try DeviceDriver(house.devices, link: devicesLink, loop: loop)
      hands = try Hands(
        script,
        speed: options.speed,
        registry: registry,
        link: handsLink,
        loop: loop
      )
    } catch {
      throw DemoError(error.description)
    }
  }

  /// Plays to the end; 0 if every device ended at what was asked for last.
  package func run() throws(DemoError) -> Int32 {
    connectEars()
    announce()
    do throws(OperationsError) {
      pulse = try loop.makeTimer { [unowned self] in beat() }
      for signal in DemoSignals.ending { try loop.onSignal(signal) { [unowned self] in leave() } }
      gateway.onConnection = { [unowned self] isUp in if isUp { startDevices() } }
      try gateway.start()
    } catch {
      throw DemoError(error.description)
    }
    loop.run()
    return exitCode
  }

  // MARK: Coming up

  /// The devices come up when the gateway listens: not all of them retain their states.
  private func startDevices() {
    gateway.onConnection = nil
    driver.start { [unowned self] in startHands() }
  }

  private func startHands() {
    handsLink.onConnected = { [unowned self] in
      // What the devices said arrives meanwhile.
      start = EventLoop.now().advanced(by: .milliseconds(200))
      hands.begin(at: start)
      schedulePulse()
    }
    handsLink.start()
  }

  private func connectEars() {
    hands.onAct = { [unowned self] in show($0) }
    hands.onChange = { [unowned self] key, _, now in
      ledger.change(key, at: now)
      showFlood(at: now)
    }
    gateway.onCommand = { [unowned self] topic, payload, keys in
      show(command: topic, payload, keys)
    }
    gateway.watchAll { [unowned self] event in
      guard let key = ledger.event(event) else { return }
      // The hands' own changes are counted when they are made.
      if stage == .kept, event.phase == .accepted { ledger.change(key, at: EventLoop.now()) }
      show(event, of: key)
    }
    driver.onReport = { [unowned self] message in
      let document = (try? JSONParser.parse(message.payload.span)) ?? .string(message.text)
      ledger.report(topic: message.topic, document: document)
    }
  }

  // MARK: Going on, and ending

  /// Looks ten times a second how far everything has come.
  private func beat() {
    switch stage {
    case .playing:
      if hands.isDone { lookForEnd() }
      if stage == .playing { schedulePulse() }
    case .kept, .leaving: break
    case .listening:
      conclude()
      loop.stop()
    }
  }

  private func lookForEnd() {
    let now = EventLoop.now()
    let end = deadline ?? now.advanced(by: Self.patience)
    deadline = end
    refreshTargets()
    if script.endsAbruptly && !options.keeps {
      leave()
    } else if now >= end || (ledger.isSettled && driver.isResting && ledger.isDone) {
      guard options.keeps else { return leave() }
      stage = .kept
      conclude()
      showInvitation()
    }
  }

  private func schedulePulse(after pause: Duration = .milliseconds(100)) {
    pulse?.arm(at: EventLoop.now().advanced(by: pause))
  }

  private func refreshTargets() {
    for key in ledger.order { ledger.target(key, gateway.row(registry[key].key)?.target) }
  }

  /// Says how it ended, once.
  private func conclude() {
    guard !hasSummary else { return }
    hasSummary = true
    exitCode = hands.isDone && ledger.isDone ? 0 : 1
    showSummary()
  }

  /// Lets the gateway end in good order; the devices get a moment to report what it sent last.
  private func leave() {
    if stage == .playing { refreshTargets() }
    stage = .leaving
    gateway.beginShutdown { [unowned self] report in
      screen.line([time(), .init("The gateway flushed and ended: \(report.description).")])
      stage = .listening
      schedulePulse(after: .milliseconds(300))
    }
  }

  // MARK: Preparing

  private static func configuration(
    _ house: DemoHouse,
    ports: (broker: Int, panel: Int),
    folder: String,
    _ socket: String
  ) throws(DemoError) -> LoadedConfiguration {
    let settings = folder + "/settings.conf"
    do {
      let text = DemoHome.settingsFile(port: ports.broker, panel: ports.panel, socket: socket)
      try TextFile.write(text, to: settings)
      try TextFile.write(house.deviceFile, to: folder + "/home.yaml")
    } catch {
      throw DemoError("\(error)")
    }
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = settings
    do throws(ConfigurationFailure) {
      return try ConfigurationLoader.load(overrides, environment: [:])
    } catch {
      throw DemoError(error.problems.map(\.description).joined(separator: "\n"))
    }
  }

  private static func script(
    _ text: [UInt8],
    _ registry: Registry
  ) throws(DemoError) -> DemoScript {
    do throws(DemoScript.Mistakes) {
      return try DemoScript(text: text, registry: registry)
    } catch {
      throw DemoError(error.description, isBadInput: true)
    }
  }
}
