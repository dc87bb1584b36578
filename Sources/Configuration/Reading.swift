// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices

/// One run over all files.
final class Reading {
  /// The largest settings or device file, in bytes.
  static let maximumFile = 8 << 20

  let environment: [String: String]
  let problems = Problems()
  /// Device files, by path, as they would be, instead of those on the disk; with any, or none, the
  /// folder may be missing.
  private let drafts: [String: [UInt8]]?
  private var files: [String] = []
  private var profileFiles: [String] = []

  init(environment: [String: String], drafts: [String: [UInt8]]? = nil) {
    self.environment = environment
    self.drafts = drafts
  }

  /// Everything, flags over environment over file.
  func load(_ overrides: ConfigurationLoader.Overrides) -> LoadedConfiguration {
    let variables = EnvironmentOverrides(environment: environment, problems: problems)
    variables.warnOfUnknown()
    let path = settingsPath(overrides, variables)
    var settings = GatewayConfiguration()
    var places = SettingsPlaces()
    if let path {
      settings.devicesDirectory = FilePath.resolve("devices", in: FilePath.folder(of: path))
      if let root = read(path) {
        let reader = SettingsReader(folder: FilePath.folder(of: path), problems: problems)
        let standard = settings.devicesDirectory
        (settings, places) = reader.settings(root)
        if places.devices == nil { settings.devicesDirectory = standard }
      }
    }
    variables.apply(to: &settings, &places)
    if let socket = overrides.socket { settings.socket = socket }
    readSecrets(into: &settings, places, file: path ?? "built-in settings")
    RouteChecks(settings: settings, problems: problems).check(places.routes)
    var folder = (settings.devicesDirectory, places.devices)
    if let given = variables.value("SETTLE_DEVICES") {
      folder = (given, .start(of: "$SETTLE_DEVICES"))
    }
    if let given = overrides.devices { folder = (given, .start(of: given)) }
    settings.devicesDirectory = folder.0
    return complete(settings, places, folder: folder)
  }

  /// The devices, and what can only be checked with them.
  func complete(
    _ settings: GatewayConfiguration,
    _ places: SettingsPlaces,
    folder: (path: String, position: SourcePosition?)
  ) -> LoadedConfiguration {
    var context = DeviceContext()
    context.policies = settings.policies
    context.ttl = settings.ttl
    context.lanes = places.hasLanes ? settings.lanes.keys.sorted() : nil
    context.baseTopic = settings.baseTopic
    let profiles = ProfileStore(problems: problems)
    readProfiles(folder.path, into: profiles)
    var decoder = DeviceDecoder(context: context, profiles: profiles, problems: problems)
    readDevices(folder, into: &decoder)
    let registry = Registry(decoder.devices)
    let before = problems.count
    if before == 0 {
      InputReader.check(settings.inputs, places.inputs, against: registry, problems: problems)
    }
    return LoadedConfiguration(
      gateway: settings,
      registry: registry,
      files: files,
      profileFiles: profileFiles,
      warnings: problems.sorted(problems.warnings)
    )
  }

  private func settingsPath(
    _ overrides: ConfigurationLoader.Overrides,
    _ variables: EnvironmentOverrides
  ) -> String? {
    if let path = overrides.config ?? variables.value("SETTLE_CONFIG") { return path }
    do throws(SafeFile.Problem) {
      _ = try SafeFile.read(ConfigurationLoader.standardPath, limit: Self.maximumFile)
    } catch {
      if error.isMissing { return nil }
    }
    return ConfigurationLoader.standardPath
  }

  private func readSecrets(
    into settings: inout GatewayConfiguration,
    _ places: SettingsPlaces,
    file: String
  ) {
    let secrets = Secrets(environment: environment, problems: problems)
    settings.mqtt.password = secrets.mainPassword(places.main)
    check(settings.mqtt, places.main, file: file)
    if let http = settings.http {
      let token = secrets.token(in: http.tokenFile, at: places.tokenFile)
      settings.http?.token = token
      // A token that is stated and cannot be read is a mistake already.
      if token == nil, http.tokenFile == nil { checkListen(http, places) }
    }
    for name in settings.brokers.keys.sorted() {
      let place = places.brokers[name] ?? BrokerPlaces()
      settings.brokers[name]?.password = secrets.filePassword(place)
      if let broker = settings.brokers[name] { check(broker, place, file: file) }
    }
  }

  private func checkListen(_ http: HTTPConfiguration, _ places: SettingsPlaces) {
    for (address, position) in zip(http.addresses, places.listen) {
      if let reason = ListenAddress.reason(toProtect: address) {
        problems.add(position, "listen: \(reason)")
      }
    }
  }

  private func check(_ broker: BrokerConfiguration, _ places: BrokerPlaces, file: String) {
    PlaintextCheck.check(broker, places, file: file, problems: problems)
    if !broker.usesMQTT5, broker.password != nil, broker.username == nil {
      problems.add(
        places.url ?? .start(of: file),
        "'username' is missing: MQTT 3.1.1 has no password without"
      )
    }
  }

  private func readProfiles(_ folder: String, into store: ProfileStore) {
    let path = FilePath.join(folder, "profiles")
    do throws(SafeFile.Problem) {
      for name in try SafeFile.names(in: path, suffix: ".yaml") {
        profileFiles.append(FilePath.join(path, name))
        if let root = read(FilePath.join(path, name)) { store.add(root) }
      }
    } catch {
      if !error.isMissing { problems.add(.start(of: path), "the folder \(error.message)") }
    }
  }

  private func readDevices(
    _ folder: (path: String, position: SourcePosition?),
    into decoder: inout DeviceDecoder
  ) {
    do throws(SafeFile.Problem) {
      let paths = try devicePaths(in: folder.path)
      for path in paths {
        if let root = read(path) { decoder.read(root) }
      }
      guard drafts == nil else { return }
      for name in try SafeFile.names(in: folder.path, suffix: ".yml") {
        problems.warn(
          .start(of: FilePath.join(folder.path, name)),
          "the file is not read: names of device files end in .yaml"
        )
      }
    } catch {
      let message = "the folder of device files '\(folder.path)' \(error.message)"
      if let position = folder.position {
        problems.add(position, message)
      } else {
        problems.warn(.start(of: folder.path), message)
      }
    }
  }

  /// The device files in a folder, drafts that are not there yet after the others.
  private func devicePaths(in folder: String) throws(SafeFile.Problem) -> [String] {
    var paths: [String] = []
    do throws(SafeFile.Problem) {
      paths = try SafeFile.names(in: folder, suffix: ".yaml").map { FilePath.join(folder, $0) }
    } catch {
      if drafts == nil || !error.isMissing { throw error }
    }
    let new = (drafts ?? [:]).keys.filter { path in
      FilePath.join(folder, String(path.split(separator: "/").last ?? "")) == path
        && !paths.contains(path)
    }
    return paths + new.sorted()
  }

  /// A file's root; `nil` when it is empty or cannot be read.
  private func read(_ path: String) -> YAMLNode? {
    problems.note(path)
    files.append(path)
    do throws(SafeFile.Problem) {
      let draft = drafts?[path]
      let bytes =
        if let draft { draft } else { try SafeFile.read(path, limit: Self.maximumFile).bytes }
      return YAMLReader.read(bytes, file: path, problems: problems)
    } catch {
      problems.add(.start(of: path), "the file \(error.message)")
      return nil
    }
  }
}
