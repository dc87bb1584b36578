// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
import JSON
internal import Values

/// Reads the settings file.
struct SettingsReader {
  /// The folder of the file, the base of relative paths; `nil` for built-in settings.
  let folder: String?
  let problems: Problems

  /// Reads the file over the built-in values, without secrets.
  func settings(_ root: YAMLNode) -> (GatewayConfiguration, SettingsPositions) {
    var settings = GatewayConfiguration()
    var positions = SettingsPositions()
    guard !root.isNull, let section = Section(root, .settings, problems, what: "settings") else {
      return (settings, positions)
    }
    let brokers = BrokerReader(folder: folder, problems: problems)
    if let mqtt = section.nested("mqtt", .mqtt) {
      settings.mqtt = brokers.broker(mqtt, into: &positions.main)
      if let base = baseTopic(mqtt) { settings.baseTopic = base }
      settings.replyTopics = replyTopics(mqtt)
    }
    settings.socket = socket(section)
    settings.policies = policies(section)
    if let ttl = section.duration("ttl") { settings.ttl = ttl }
    if let devices = section.text("devices", expected: "a folder"), let node = section["devices"] {
      settings.devicesDirectory = resolve(devices)
      positions.devices = node.position
    }
    settings.http = http(section, &positions)
    settings.journal = journal(section)
    readCluster(section, into: &settings, &positions)
    if let timeout = section.nested("shutdown", .shutdown)?.duration("timeout") {
      settings.shutdownTimeout = timeout
    }
    readLanes(section, into: &settings)
    readBrokers(section, brokers, into: &settings, &positions)
    let routes = RouteReader(brokers: settings.brokers.keys.sorted(), problems: problems)
    for node in list(section, "routes") {
      if let route = routes.route(node) {
        settings.routes.append(route.route)
        positions.routes.append(route.positions)
      }
    }
    for node in list(section, "inputs") {
      if let input = InputReader(problems: problems).input(node) {
        settings.inputs.append(input.input)
        positions.inputs.append(input.positions)
      }
    }
    settings.discovery = discovery(section)
    settings.importing = importing(section)
    settings.limits = limits(section)
    return (settings, positions)
  }

  private func socket(_ section: Section) -> String? {
    guard let path = section.text("socket").map({ resolve($0) }), let node = section["socket"]
    else { return nil }
    if let problem = SettingsRules.problem(inSocketPath: path) {
      problems.add(node.position, "socket: \(problem)")
    }
    return path
  }

  private func baseTopic(_ mqtt: Section) -> String? {
    guard let base = mqtt.text("base_topic", expected: "a topic"), let node = mqtt["base_topic"]
    else { return nil }
    if let problem = SettingsRules.problem(inBaseTopic: base) {
      problems.add(node.position, "base_topic: \(problem)")
      return nil
    }
    return base
  }

  private func replyTopics(_ mqtt: Section) -> [String] {
    (mqtt.words("reply_topics") ?? []).compactMap { filter, node in
      guard let problem = Topic.problem(inFilter: filter) else { return filter }
      problems.add(node.position, "reply_topics: \(problem)")
      return nil
    }
  }

  private func policies(_ section: Section) -> PolicyTable {
    var table = PolicyTable()
    guard let policies = section.nested("policy", .policies) else { return table }
    for type in KeyTable.policies.keys {
      if let node = policies[type] { table.stated[type] = PolicyFields(node, problems) }
    }
    return table
  }

  private func http(
    _ section: Section,
    _ positions: inout SettingsPositions
  ) -> HTTPConfiguration? {
    guard let fields = section.nested("http", .http) else { return nil }
    positions.tokenFile = fields["token_file"]?.position
    let token = fields.text("token_file").map { resolve($0) }
    guard let node = fields["listen"] else {
      fields.missing("listen", "such as [127.0.0.1:8484]")
      return nil
    }
    var addresses: [String] = []
    for element in node.elements ?? [node] {
      guard var text = element.text, !text.isEmpty else {
        problems.add(element, "listen", expected: "HOST:PORT or unix:PATH")
        continue
      }
      if text.hasPrefix("unix:"), text.count > 5 {
        text = "unix:" + resolve(String(text.dropFirst(5)))
      }
      if let problem = ListenAddress.problem(in: text) {
        problems.add(element.position, "listen: \(problem)")
      } else {
        addresses.append(text)
        positions.listen.append(element.position)
      }
    }
    var http = HTTPConfiguration(listen: addresses, tokenFile: token)
    http.hosts = hosts(fields)
    http.trusted = trusted(fields)
    return http
  }

  /// Additional host names of this gateway, without ports.
  private func hosts(_ fields: Section) -> [String] {
    fields.each("hosts", expected: "a host name without a port") { text in
      let isHost = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/:?#@*".utf8.contains($0) }
      return isHost && !text.isEmpty ? text : nil
    }
  }

  /// Proxies whose requests need no token.
  private func trusted(_ fields: Section) -> [String] {
    var peers = TrustedPeers()
    let expected = "an address, a network such as 10.1.0.0/16, or unix"
    return fields.each("trusted", expected: expected) { peers.insert($0) ? $0 : nil }
  }

  private func journal(_ section: Section) -> JournalConfiguration? {
    guard let fields = section.nested("journal", .journal) else { return nil }
    guard let path = fields.text("path") else {
      if fields["path"] == nil { fields.missing("path", "where should the journal be stored?") }
      return nil
    }
    var journal = JournalConfiguration(path: resolve(path))
    if let commit = fields.duration("commit") { journal.commit = commit }
    return journal
  }

  private func readCluster(
    _ section: Section,
    into settings: inout GatewayConfiguration,
    _ positions: inout SettingsPositions
  ) {
    let reader = ClusterReader(folder: folder, problems: problems)
    guard let fields = section.nested("cluster", .cluster) else { return }
    let found = reader.cluster(fields)
    settings.cluster = found.cluster
    positions.cluster = found.positions
    reader.check(settings, section, found.positions)
  }

  private func readLanes(_ section: Section, into settings: inout GatewayConfiguration) {
    guard let node = section["lanes"] else { return }
    for pair in named(node, "lanes") {
      let fields = Section(pair.value, .lane, problems, what: "lane '\(pair.key)'")
      settings.lanes[pair.key] = fields.map { LaneReader(section: $0).limits() } ?? LaneLimits()
    }
  }

  private func readBrokers(
    _ section: Section,
    _ reader: BrokerReader,
    into settings: inout GatewayConfiguration,
    _ positions: inout SettingsPositions
  ) {
    guard let node = section["brokers"] else { return }
    for pair in named(node, "brokers") {
      guard let fields = Section(pair.value, .broker, problems, what: "broker '\(pair.key)'") else {
        settings.brokers[pair.key] = BrokerConfiguration()
        continue
      }
      if fields["url"] == nil { fields.missing("url", "such as mqtts://example.org") }
      var brokerPositions = BrokerPositions()
      settings.brokers[pair.key] = reader.broker(fields, into: &brokerPositions)
      positions.brokers[pair.key] = brokerPositions
    }
  }

  private func discovery(_ section: Section) -> DiscoveryConfiguration? {
    guard let fields = section.nested("discovery", .discovery) else { return nil }
    var discovery = DiscoveryConfiguration()
    if let prefix = fields.text("prefix", expected: "a topic"), let node = fields["prefix"] {
      if let problem = Topic.problem(inName: prefix) {
        problems.add(node.position, "prefix: \(problem)")
      }
      discovery.prefix = prefix
    }
    if let format = fields.choice("format", of: ["device", "component"]) {
      discovery.format = .init(rawValue: format) ?? .device
    }
    return discovery
  }

  private static let sources = ImportConfiguration.Source.allCases.map(\.rawValue)

  private func importing(_ section: Section) -> ImportConfiguration? {
    guard let node = section["import"] else { return nil }
    if node.text == "auto" { return ImportConfiguration() }
    guard node.pairs != nil, let fields = section.nested("import", .importing) else {
      return section.reject(
        node,
        "import",
        expected: "auto, or a section with sources and quiet",
        suggestion: ["true", "yes", "on"].contains(node.text) ? "auto" : nil
      )
    }
    var importing = ImportConfiguration()
    if let node = fields["sources"], let words = fields.words("sources") {
      importing.sources = sources(words, fields)
      if words.isEmpty, node.elements?.isEmpty ?? false {
        let known = Section.list(Self.sources)
        problems.add(node.position, "sources: the list is empty; expected some of \(known)")
      }
    }
    if let node = fields["quiet"], let quiet = fields.duration(node, "quiet") {
      importing.quiet = quiet
      if !(.milliseconds(100)...ImportConfiguration.longestWait).contains(quiet) {
        problems.add(node, "quiet", expected: "a duration from 100ms to 60s")
      }
    }
    return importing
  }

  private func sources(
    _ words: [(text: String, node: YAMLNode)],
    _ fields: Section
  ) -> [ImportConfiguration.Source] {
    words.compactMap { word, node in
      ImportConfiguration.Source(rawValue: word)
        ?? fields.reject(
          node,
          "sources",
          expected: "one of \(Section.list(Self.sources))",
          suggestion: Suggestion.nearest(to: word, in: Self.sources)
        )
    }
  }

  private func limits(_ section: Section) -> Limits {
    var limits = Limits()
    guard let fields = section.nested("limits", .limits) else { return limits }
    if let pending = fields.integer("pending", in: 1...10_000_000) { limits.pending = pending }
    if let payload = fields.size("payload", in: 64...(256 << 20)) { limits.payload = payload }
    if let announcement = fields.size("announcement", in: 64...(256 << 20)) {
      limits.announcement = announcement
    }
    if let line = fields.size("line", in: 256...(256 << 20)) { limits.line = line }
    if let clients = fields.integer("http_clients", in: 1...10_000) { limits.httpClients = clients }
    if let events = fields.integer("events", in: 1...1_000_000) { limits.events = events }
    if let devices = fields.integer("devices", in: 1...1_000_000) { limits.devices = devices }
    return limits
  }

  private func list(_ section: Section, _ key: String) -> [YAMLNode] {
    guard let node = section[key] else { return [] }
    return node.elements ?? section.reject(node, key, expected: "a list") ?? []
  }

  /// The entries of a mapping from names.
  private func named(_ node: YAMLNode, _ key: String) -> [YAMLNode.Pair] {
    guard let pairs = node.pairs else {
      problems.add(node, key, expected: "a mapping of names")
      return []
    }
    for pair in pairs where !SettingsRules.isName(pair.key) {
      problems.add(
        pair.keyPosition,
        "'\(Excerpt.of(pair.key))' is not a name; allowed: letters, digits, '-' and '_', 64 at most"
      )
    }
    return pairs
  }

  private func resolve(_ path: String) -> String { FilePath.resolve(path, in: folder) }
}

/// Reads the limits of one lane: `rate` and `burst`, `window`, or both.
struct LaneReader {
  private static let windowForms =
    "auto, a whole number from 1 to 1000, or a section with start, min and max"

  let section: Section

  func limits() -> LaneLimits {
    let limits = LaneLimits(rate: rate(), window: window(), busy: busy())
    if section["rate"] == nil, section["window"] == nil {
      section.missing("rate", "\(RateText.forms), or 'window', such as auto")
    }
    return limits
  }

  private func rate() -> LaneLimits.Rate? {
    let burst = section.integer("burst", in: 1...100_000)
    guard let node = section["rate"] else {
      if burst != nil, section["window"] != nil {
        section.missing("rate", "'burst' says how many commands may exceed it")
      }
      return nil
    }
    guard let text = node.text, let rate = RateText.parse(text) else {
      return section.reject(
        node,
        "rate",
        expected: RateText.forms,
        suggestion: node.text.flatMap { RateText.suggestion(for: $0) }
      )
    }
    return LaneLimits.Rate(perSecond: rate, burst: burst ?? 1)
  }

  private func window() -> LaneLimits.Window? {
    guard let node = section["window"] else { return nil }
    if node.pairs != nil { return section.nested("window", .window).flatMap(window) }
    if node.text == "auto" { return .auto }
    guard let word = node.word, let size = Int(word), Self.sizes.contains(size) else {
      return section.reject(node, "window", expected: Self.windowForms)
    }
    return LaneLimits.Window(start: size, min: size, max: size)
  }

  private static let sizes = 1...1000

  private func window(_ fields: Section) -> LaneLimits.Window? {
    var window = LaneLimits.Window.auto
    let start = fields.integer("start", in: Self.sizes)
    if let min = fields.integer("min", in: Self.sizes) { window.min = min }
    if let max = fields.integer("max", in: Self.sizes) { window.max = max }
    guard window.min <= window.max else {
      let place = fields["min"] ?? fields["max"]
      return place.flatMap {
        fields.reject($0, "min", expected: "at most 'max', which is \(window.max)")
      }
    }
    window.start = start ?? Swift.min(Swift.max(window.start, window.min), window.max)
    guard window.min <= window.start, window.start <= window.max else {
      return fields["start"].flatMap {
        fields.reject($0, "start", expected: "from \(window.min) to \(window.max)")
      }
    }
    return window
  }

  private func busy() -> LaneLimits.Busy? {
    guard let fields = section.nested("busy", .busy) else { return nil }
    if section["window"] == nil { section.missing("window", "'busy' closes it, such as auto") }
    for (key, reason) in [("topic", "where a message says it"), ("is", Self.patternForm)]
    where fields[key] == nil { fields.missing(key, reason) }
    let pointer = fields.pointer("value", nil)
    let pattern = fields.text("is", expected: Self.patternForm)
    guard let node = fields["topic"], let topic = fields.text("topic", expected: "a topic") else {
      return nil
    }
    if let problem = Topic.problem(inName: topic) {
      fields.problems.add(node.position, "topic: \(problem)")
    }
    return LaneLimits.Busy(topic: topic, value: pointer ?? .whole, pattern: Pattern(pattern ?? ""))
  }

  private static let patternForm = "a pattern of the text, such as \"*BUSY*\""
}

/// Positions in the settings file, for checks that run after it is read.
struct SettingsPositions {
  var main = BrokerPositions()
  var brokers: [String: BrokerPositions] = [:]
  /// The elements of `http.listen:`.
  var listen: [SourcePosition] = []
  /// `http.token_file:`, if present.
  var tokenFile: SourcePosition?
  var cluster: ClusterPositions?
  /// `devices:`, if present.
  var devices: SourcePosition?
  /// Whether the state folder is that of a gateway of perhaps another user.
  var isForeignState = false
  /// Whether the lanes of devices are compared with the settings' lanes, even where those are
  /// built-in settings.
  var checksLanes = false
  var routes: [RoutePositions] = []
  var inputs: [[String: InputPositions]] = []
}

/// Positions in a broker's section.
struct BrokerPositions {
  /// The URL, or the section when the URL is absent.
  var url: SourcePosition?
  /// The resolved path and its position.
  var passwordFile: (path: String, position: SourcePosition)?
}

/// Positions of a route's ends.
struct RoutePositions {
  let from: SourcePosition
  let to: SourcePosition
}

/// Positions of one change of an input.
struct InputPositions {
  let key: SourcePosition
  let operation: SourcePosition
}

/// Rules for names and topics in the settings.
enum SettingsRules {
  /// Whether a name is valid for a lane, a broker, a cluster or a member of one.
  static func isName(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy(isName(byte:))
  }

  /// Whether a byte may be part of such a name.
  static func isName(byte: UInt8) -> Bool {
    byte == UInt8(ascii: "-") || Identifiers.isPropertyByte(byte)
  }

  /// Why a topic cannot be the base topic; `nil` if it can.
  static func problem(inBaseTopic base: String) -> String? {
    if let problem = Topic.problem(inName: base) { return problem }
    if base.utf8.first == UInt8(ascii: "/") || base.utf8.last == UInt8(ascii: "/") {
      return "the base topic must not start or end with '/'"
    }
    return base.utf8.count > 1_000 ? "the base topic has at most 1,000 bytes" : nil
  }

  /// The longest path of a unix socket that the kernel accepts, in bytes.
  static let longestSocketPath = 107

  /// Why a path cannot be that of a socket; `nil` if it can.
  static func problem(inSocketPath path: String) -> String? {
    let count = path.utf8.count
    return count > longestSocketPath
      ? "the path of a socket has at most \(longestSocketPath) bytes; this one has \(count)" : nil
  }

  /// The topic filters on which the gateway accepts commands.
  static func commandFilters(baseTopic base: String) -> [String] {
    ["set", "step", "toggle", "flush", "cancel"].map { "\(base)/+/+/\($0)" }
      + ["\(base)/+/set", "\(base)/+/get"]
  }
}
