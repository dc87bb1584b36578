// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import CLinux
import Configuration
import Control
import Devices
import Engine
import Gateway
import GatewayCore
import Glibc
import Import
import Journal
import LastOut
import Operations

/// `settle run`: runs the gateway until a signal ends it.
struct RunCommand: Command {
  static let name = "run"
  static let summary = "Run the gateway."
  static let discussion = """
    Accepts changes by MQTT, over the control socket and by HTTP, and publishes each value once it \
    has settled.

    SIGTERM and SIGINT flush everything pending, wait for the broker's acknowledgements, report \
    what was sent and what was not, and exit: with 0 if everything was sent or is kept in the \
    journal, otherwise with 1. A second signal reports and exits at once.

    SIGHUP reloads devices and policies, as "settle reload" does. Pending values stay.
    """
  static let examples = [
    Example(
      "settle run",
      "Use the settings in /etc/settle, or a broker on this machine if there are none."
    ),
    Example("settle run --config settle.yaml", "Use other settings."),
    Example("settle run --devices ./devices", "Use other device files."),
  ]
  static let parameters: [Parameter<Self>] = [
    .option(
      "config",
      { $0.config = $1 },
      value: "FILE",
      completion: .files,
      help: "The settings file; default: SETTLE_CONFIG, then \(ConfigurationLoader.standardPath),"
        + " then built-in values."
    ),
    .option(
      "devices",
      { $0.devices = $1 },
      value: "DIR",
      completion: .directories,
      help: "The folder with the device files."
    ),
    .option(
      "socket",
      { $0.socket = $1 },
      value: "PATH",
      completion: .files,
      help: "The control socket."
    ),
    .flag("verbose", short: "v", { $0.isVerbose = true }, help: "Log debug messages."),
  ]

  var config: String?
  var devices: String?
  var socket: String?
  var isVerbose = false

  /// Runs until the gateway ends; returns the exit code.
  func run() -> ExitCode {
    let log = Logger(level: isVerbose ? .debug : .info)
    let read = reading()
    let configuration: LoadedConfiguration
    switch read() {
    case .success(let loaded): configuration = loaded
    case .failure(let failure):
      for problem in failure.problems { StandardError.write(problem.description) }
      return .badConfiguration
    }
    for warning in configuration.warnings { StandardError.write(warning.description) }
    do throws(OperationsError) {
      return try serve(configuration, rereading: read, log: log)
    } catch {
      log.error("Cannot start", ["reason": error.description])
      return .failed
    }
  }

  /// The files that the options name.
  private var overrides: ConfigurationLoader.Overrides {
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = config
    overrides.devices = devices
    overrides.socket = socket
    return overrides
  }

  /// Reads settings and devices, at the start and at each reload.
  private func reading() -> @Sendable () -> Result<LoadedConfiguration, ConfigurationFailure> {
    let environment = Environment.all
    return { [overrides] in
      do throws(ConfigurationFailure) {
        return .success(try ConfigurationLoader.load(overrides, environment: environment))
      } catch {
        return .failure(error)
      }
    }
  }

  private func serve(
    _ configuration: LoadedConfiguration,
    rereading read: @escaping @Sendable () -> Result<LoadedConfiguration, ConfigurationFailure>,
    log: Logger
  ) throws(OperationsError) -> ExitCode {
    let loop = try EventLoop()
    let gateway = try GatewayHost(configuration: configuration, loop: loop, log: log)
    var exitCode = ExitCode.done
    for signal in [SIGTERM, SIGINT] {
      try loop.onSignal(signal) {
        Notify.stopping()
        gateway.beginShutdown { report in
          StandardError.write(report.description)
          exitCode = ExitCode(rawValue: report.exitCode) ?? .failed
          loop.stop()
        }
      }
    }
    gateway.enableReload(reading: read)
    try gateway.enableImport(DeviceImport(overrides, environment: Environment.all))
    try loop.onSignal(SIGHUP) {
      gateway.reload { _ in }  // The log has the result.
    }
    try gateway.listen()
    do throws(JournalRefusal) {
      try gateway.openJournal()
    } catch {
      gateway.stopListening()
      StandardError.write(error.description)
      return .badConfiguration
    }
    do throws(EngineRefusal) {
      try gateway.openCluster()
    } catch {
      gateway.stopListening()
      StandardError.write(error.description)
      return .badConfiguration
    }
    gateway.onRefusal = { reason in
      StandardError.write(reason)
      exitCode = .badConfiguration
      loop.stop()
    }
    try gateway.start()
    log.info(
      "Running",
      [
        "devices": String(configuration.registry.devices.count),
        "keys": String(configuration.registry.properties.count),
        "routes": String(configuration.gateway.routes.count),
        "socket": gateway.socketPath ?? "",
      ]
    )
    if let path = gateway.socketPath, !SocketPath.usual().contains(path) {
      log.info("Other commands find this gateway by its socket", ["SETTLE_SOCKET": path])
    }
    Notify.ready()
    let watchdog = try LoopWatchdog(loop) { what, elapsed in
      log.warning(
        "Event loop blocked",
        ["by": what, "elapsed_ms": String(elapsed.wholeNanoseconds / 1_000_000)]
      )
    }
    let feeding = try ServiceWatchdog.period().map { period throws(OperationsError) in
      try ServiceWatchdog(loop, every: period)
    }
    // What reading the files freed lies between what is kept: 2 MB of 23 with 1,000 devices.
    malloc_trim(0)
    loop.run()
    withExtendedLifetime((watchdog, feeding)) {}
    return exitCode
  }
}
