// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import Devices
import Gateway
import GatewayCore
import Glibc
import JSON
import LastOut
package import Operations
import Values

/// The demo: a private broker process, and the gateway, the simulated devices and the script player
/// on one event loop.
///
/// Devices and player have MQTT connections of their own, so the gateway sees the traffic of a real
/// home.
package final class DemoStage {
  package struct Options: Sendable {
    /// The convention of the devices; `nil` for the standard home.
    package var convention: ConventionName?
    /// The text of a script; `nil` for the house's own.
    package var script: [UInt8]?
    package var speed = 1.0
    /// Whether to continue after the script until a signal arrives.
    package var keeps = false
    package var logLevel = Logger.Level.warning

    package init() {}
  }

  /// The progress of the demo.
  private enum Stage {
    /// The script runs, or its changes are still in flight.
    case playing
    /// The script is over and the summary is shown; the user can make changes.
    case interactive
    /// The gateway shuts down.
    case shuttingDown
    /// The gateway has ended; devices may still report its last commands.
    case awaitingReports
  }

  /// How long devices may take to come to rest after the last change.
  static let restTimeout = Duration.seconds(20)

  let options: Options
  let house: DemoHouse
  let broker: PrivateBroker
  let loop: EventLoop
  let gateway: GatewayHost
  let registry: Registry
  let script: DemoScript
  let driver: DeviceDriver
  let player: ScriptPlayer
  let socket: String
  /// The loopback port of the panel, held for it.
  let panel: PortReservation
  var ledger: DemoLedger
  var screen: DemoScreen
  var start = Moment.zero
  private let playerLink: DemoLink
  private let devicesLink: DemoLink
  private var timer: LoopTimer?
  private var deadline: Moment?
  private var stage = Stage.playing
  private var hasSummary = false
  private var exitCode: Int32 = 1

  /// Starts the broker and creates the gateway, the devices and the player.
  ///
  /// - Throws: ``DemoError`` when the broker cannot start or the script is invalid.
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
      gateway = try GatewayHost(
        configuration: configuration,
        loop: loop,
        log: Logger(level: options.logLevel)
      )
      playerLink = try DemoLink(name: "hands", port: broker.port, loop: loop)
      devicesLink = try DemoLink(name: "devices", port: broker.port, loop: loop)
      driver = try DeviceDriver(house.devices, link: devicesLink, loop: loop)
      player = try ScriptPlayer(
        script,
        speed: options.speed,
        registry: registry,
        link: playerLink,
        loop: loop
      )
    } catch {
      throw DemoError(error.description)
    }
  }

  /// Runs the demo and returns its exit code: 0 if every device has the last requested value.
  ///
  /// - Throws: ``DemoError`` when the gateway cannot start.
  package func run() throws(DemoError) -> Int32 {
    setCallbacks()
    announce()
    do throws(OperationsError) {
      timer = try loop.makeTimer { [unowned self] in tick() }
      for signal in [SIGINT, SIGTERM, SIGHUP] {
        try loop.onSignal(signal) { [unowned self] in shutDown() }
      }
      gateway.onConnection = { [unowned self] isUp in if isUp { startDevices() } }
      try gateway.start()
    } catch {
      throw DemoError(error.description)
    }
    loop.run()
    return exitCode
  }

  // MARK: Start

  /// Starts the devices when the gateway listens, because not all of them retain their states.
  private func startDevices() {
    gateway.onConnection = nil
    driver.start { [unowned self] in startPlayer() }
  }

  private func startPlayer() {
    playerLink.onConnected = { [unowned self] in
      // The devices' first reports arrive before the script starts.
      start = EventLoop.now().advanced(by: .milliseconds(200))
      player.begin(at: start)
      scheduleTick()
    }
    playerLink.start()
  }

  private func setCallbacks() {
    player.onAct = { [unowned self] in show($0) }
    player.onChange = { [unowned self] key, now in
      ledger.change(key, at: now)
      showFlood()
    }
    gateway.onCommand = { [unowned self] topic, payload, keys in
      show(command: topic, payload, keys)
    }
    gateway.watchAll { [unowned self] event in
      guard let key = ledger.event(event) else { return }
      // The player's changes are counted when they are made.
      if stage == .interactive, event.phase == .accepted { ledger.change(key, at: EventLoop.now()) }
      show(event, of: key)
    }
    driver.onReport = { [unowned self] message in
      ledger.report(topic: message.topic, document: message.document)
    }
  }

  // MARK: End

  /// Checks the progress ten times a second.
  private func tick() {
    switch stage {
    case .playing:
      if player.isDone { checkForEnd() }
      if stage == .playing { scheduleTick() }
    case .interactive, .shuttingDown: break
    case .awaitingReports:
      conclude()
      loop.stop()
    }
  }

  private func checkForEnd() {
    let now = EventLoop.now()
    let end = deadline ?? now.advanced(by: Self.restTimeout)
    deadline = end
    refreshTargets()
    if script.endsAbruptly && !options.keeps {
      // The last change is still between the broker and the gateway.
      if now >= end || ledger.isReceived { shutDown() }
    } else if now >= end || (ledger.isSettled && driver.isResting && ledger.isDone) {
      guard options.keeps else { return shutDown() }
      stage = .interactive
      conclude()
      showInvitation()
    }
  }

  private func scheduleTick(after pause: Duration = .milliseconds(100)) {
    timer?.arm(at: EventLoop.now().advanced(by: pause))
  }

  private func refreshTargets() {
    for key in ledger.order { ledger.target(key, gateway.row(registry[key].key)?.target) }
  }

  /// Shows the summary once and sets the exit code.
  private func conclude() {
    guard !hasSummary else { return }
    hasSummary = true
    exitCode = player.isDone && ledger.isDone ? 0 : 1
    showSummary()
  }

  /// Shuts down the gateway, then waits 300 ms for the devices' reports.
  private func shutDown() {
    if stage == .playing { refreshTargets() }
    stage = .shuttingDown
    gateway.beginShutdown { [unowned self] report in
      screen.line([time(), .init("The gateway flushed and ended: \(report.description).")])
      stage = .awaitingReports
      scheduleTick(after: .milliseconds(300))
    }
  }

  // MARK: Configuration

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

/// Why the demo cannot run.
package struct DemoError: Error, Hashable, Sendable {
  package let description: String
  /// Whether the script is invalid; otherwise the system lacks something.
  package let isBadInput: Bool

  init(_ description: String, isBadInput: Bool = false) {
    self.description = description
    self.isBadInput = isBadInput
  }
}

/// Connects simulated devices to a real broker, in real time.
package final class DeviceDriver {
  /// Called for each message that a device publishes.
  package var onReport: ((DeviceMessage) -> Void)?
  package private(set) var devices: [any SimulatedDevice]

  private let link: DemoLink
  private var timer: LoopTimer?

  package init(
    _ devices: [any SimulatedDevice],
    link: DemoLink,
    loop: EventLoop
  ) throws(OperationsError) {
    self.devices = devices
    self.link = link
    timer = try loop.makeTimer { [weak self] in self?.wake() }
    link.onMessage = { [weak self] in self?.receive($0, $1) }
  }

  /// Whether no device moves or waits for a timer.
  package var isResting: Bool { devices.allSatisfy { $0.nextWake == nil } }

  /// Connects, then starts the devices and calls `onUp`.
  package func start(onUp: @escaping () -> Void) {
    link.onConnected = { [weak self] in
      guard let self else { return }
      let now = EventLoop.now()
      for index in devices.indices { publish(devices[index].start(at: now)) }
      armTimer()
      onUp()
    }
    link.start(subscribing: devices.flatMap(\.subscriptions))
  }

  private func receive(_ topic: String, _ payload: [UInt8]) {
    wake()
    let now = EventLoop.now()
    let message = DeviceMessage(topic: topic, payload: payload)
    for index in devices.indices where devices[index].listens(to: topic) {
      publish(devices[index].receive(message, at: now))
    }
    armTimer()
  }

  private func wake() {
    let now = EventLoop.now()
    for index in devices.indices {
      while let due = devices[index].nextWake, due <= now {
        publish(devices[index].wake(at: now))
      }
    }
    armTimer()
  }

  private func publish(_ messages: [DeviceMessage]) {
    for message in messages {
      link.publish(message.topic, message.payload, retain: message.retain)
      onReport?(message)
    }
  }

  private func armTimer() { timer?.arm(at: devices.compactMap(\.nextWake).min()) }
}
