// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values
package import JSON

extension StatusReport {
  package var json: JSONValue {
    guard let cluster else { return .object(members) }
    return .object(
      members + [
        .init("cluster", .string(cluster.name)), .init("member", .string(cluster.member)),
        .init("members", .array(cluster.members.map(\.json))),
        .init(
          "partitions",
          .array(
            cluster.owners.enumerated().map { number, owner in
              .object(["partition": .count(number), "owner": .text(owner)])
            }
          )
        ),
        .init("engine", cluster.engine.json),
      ]
    )
  }

  private var members: [JSONValue.Member] {
    let members: KeyValuePairs<String, JSONValue> = [
      "version": .string(version), "running": .boolean(isRunning), "socket": .text(socket),
      "running_ms": .count(runningMilliseconds), "files": files?.json ?? .null,
      "problems": .array(problems.map(\.json)),
      "brokers": .array(brokers.map(\.json)), "devices": devices.json,
      "queue": queue?.json ?? .null, "journal": journal?.json ?? .null,
      "http": http?.json ?? .null, "other_gateway_ms": .count(otherGatewayMilliseconds),
      "restart": .texts(restart),
      "counters": .object(counters.map { .init($0.name, .integer(Int64(clamping: $0.count))) }),
      "settings": .array(settings.map(\.json)), "mistakes": .texts(mistakes),
      "warnings": .texts(warnings), "socket_failure": .text(socketFailure),
      "other_sockets": .texts(otherSockets),
    ]
    return members.map { JSONValue.Member($0.key, $0.value) }
  }

  /// Reads a report; `nil` without its version.
  ///
  /// What another version leaves out counts as unknown.
  package init?(_ json: JSONValue) {
    guard let version = json["version"]?.string else { return nil }
    self.init(version: version, isRunning: json["running"] != false)
    socket = json["socket"]?.string
    runningMilliseconds = json["running_ms"]?.count
    files = json["files"].flatMap(GatewayFiles.init)
    settings = json.rows("settings", Setting.init)
    brokers = json.rows("brokers", Broker.init)
    devices = Devices(json["devices"] ?? .null)
    queue = json["queue"].flatMap(Queue.init)
    journal = json["journal"].flatMap(Journal.init)
    http = json["http"].flatMap(HTTP.init)
    cluster = Cluster(json)
    otherGatewayMilliseconds = json["other_gateway_ms"]?.count
    restart = json.texts("restart")
    if case .object(let members) = json["counters"] {
      counters = members.map { Counter($0.name, UInt64($0.value.count ?? 0)) }
    }
    mistakes = json.texts("mistakes")
    warnings = json.texts("warnings")
    socketFailure = json["socket_failure"]?.string
    otherSockets = json.texts("other_sockets")
    problems = json.rows("problems", Problem.init)
  }
}

extension StatusReport.Setting {
  var json: JSONValue {
    .object(["name": .string(name), "value": .string(value), "origin": .string(origin)])
  }

  init?(_ json: JSONValue) {
    guard let name = json["name"]?.string else { return nil }
    self.init(
      name: name,
      value: json["value"]?.string ?? "",
      origin: json["origin"]?.string ?? ""
    )
  }
}

extension StatusReport.Broker {
  var json: JSONValue {
    .object([
      "name": .string(name), "url": .string(url), "address": .text(address),
      "state": .string(state.rawValue), "since_ms": .count(sinceMilliseconds),
      "trouble": .text(trouble), "reason": .text(reason), "connections": .count(connections),
      "losses": .count(losses), "dropped": .count(dropped),
      "quarantined": .array(
        quarantined.map {
          .object(["topic": .string($0.topic), "for_ms": .count($0.milliseconds)])
        }
      ),
    ])
  }

  init?(_ json: JSONValue) {
    guard let name = json["name"]?.string, let url = json["url"]?.string else { return nil }
    self.init(
      name: name,
      url: url,
      state: json["state"]?.string.flatMap(State.init) ?? .idle
    )
    sinceMilliseconds = json["since_ms"]?.count
    address = json["address"]?.string
    trouble = json["trouble"]?.string
    reason = json["reason"]?.string
    connections = json["connections"]?.count ?? 0
    losses = json["losses"]?.count ?? 0
    dropped = json["dropped"]?.count ?? 0
    quarantined = json.rows("quarantined") { row in
      row["topic"]?.string.map { .init(topic: $0, milliseconds: row["for_ms"]?.count ?? 0) }
    }
  }
}

extension StatusReport.Devices {
  var json: JSONValue {
    .object([
      "count": .count(count), "keys": .count(keys), "away_count": .count(awayCount),
      "scenes": .texts(scenes),
      "away": .array(
        away.map { .object(["id": .string($0.id), "since_ms": .count($0.sinceMilliseconds)]) }
      ),
      "sleepers": .array(
        sleepers.map { .object(["id": .string($0.id), "since_ms": .count($0.sinceMilliseconds)]) }
      ),
      "unheard_count": .count(unheardCount),
      "unheard": .array(
        unheard.map { row in
          .object([
            "key": .string(row.key), "topic": .string(row.topic), "value": .string(row.pointer),
          ])
        }
      ),
      "unreadable": .array(
        unreadable.map { .object([.init("key", .string($0.key))] + $0.reports.members) }
      ),
    ])
  }

  init(_ json: JSONValue) {
    count = json["count"]?.count ?? 0
    keys = json["keys"]?.count ?? 0
    awayCount = json["away_count"]?.count ?? 0
    scenes = json.texts("scenes")
    away = json.rows("away") { row in
      row["id"]?.string.map { .init(id: $0, sinceMilliseconds: row["since_ms"]?.count) }
    }
    sleepers = json.rows("sleepers") { row in
      row["id"]?.string.map { .init(id: $0, sinceMilliseconds: row["since_ms"]?.count) }
    }
    unheardCount = json["unheard_count"]?.count ?? 0
    unheard = json.rows("unheard") { row in
      guard let key = row["key"]?.string, let topic = row["topic"]?.string else { return nil }
      return .init(key: key, topic: topic, pointer: row["value"]?.string ?? "")
    }
    unreadable = json.rows("unreadable") { row in
      guard let key = row["key"]?.string, let reports = UnreadableRow(row) else { return nil }
      return .init(key: key, reports: reports)
    }
  }
}

extension StatusReport.Queue {
  var json: JSONValue {
    .object([
      "pending": .count(pending), "limit": .count(limit), "quiet": .count(quiet),
      "offline": .count(offline), "asleep": .count(asleep), "in_flight": .count(inFlight),
      "unconfirmed": .count(unconfirmed), "lanes": .array(lanes.map(\.json)),
    ])
  }

  init?(_ json: JSONValue) {
    guard let limit = json["limit"]?.count else { return nil }
    self.init(limit: limit)
    quiet = json["quiet"]?.count ?? 0
    offline = json["offline"]?.count ?? 0
    asleep = json["asleep"]?.count ?? 0
    inFlight = json["in_flight"]?.count ?? 0
    unconfirmed = json["unconfirmed"]?.count ?? 0
    lanes = json.rows("lanes", StatusReport.Lane.init)
  }
}

extension StatusReport.Lane {
  var json: JSONValue {
    .object([
      "name": .string(name), "rate": rate.map { JSONValue(shortest: $0) } ?? .null,
      "waiting": .count(waiting), "in_flight": .count(inFlight), "window": window?.json ?? .null,
    ])
  }

  init?(_ json: JSONValue) {
    guard let name = json["name"]?.string else { return nil }
    self.init(
      name: name,
      rate: json["rate"]?.double,
      waiting: json["waiting"]?.count ?? 0,
      inFlight: json["in_flight"]?.count ?? 0
    )
    window = json["window"].flatMap(StatusReport.Window.init)
  }
}

extension StatusReport.Window {
  var json: JSONValue {
    .object([
      "size": .count(size), "in_use": .count(inUse),
      "round_trip_ms": roundTripMilliseconds.map { .count($0) } ?? .null, "lost": .count(lost),
    ])
  }

  init?(_ json: JSONValue) {
    guard let size = json["size"]?.count else { return nil }
    self.init(
      size: size,
      inUse: json["in_use"]?.count ?? 0,
      roundTripMilliseconds: json["round_trip_ms"]?.count,
      lost: json["lost"]?.count ?? 0
    )
  }
}

extension StatusReport.Journal {
  var json: JSONValue {
    .object([
      "path": .string(path), "fault": .text(fault), "full": .boolean(isFull),
      "waiting": .count(waiting),
    ])
  }

  init?(_ json: JSONValue) {
    guard let path = json["path"]?.string else { return nil }
    self.init(path: path)
    fault = json["fault"]?.string
    isFull = json["full"] == true
    waiting = json["waiting"]?.count ?? 0
  }
}

extension StatusReport.Cluster {
  /// Reads the members of a report that are about its cluster.
  fileprivate init?(_ json: JSONValue) {
    guard let name = json["cluster"]?.string, let member = json["member"]?.string else {
      return nil
    }
    self.init(name: name, member: member)
    members = json.rows("members", StatusReport.Member.init)
    owners = json.rows("partitions") { row in .some(row["owner"]?.string) }
    engine = StatusReport.Engine(json["engine"] ?? .null)
  }
}

extension StatusReport.Member {
  var json: JSONValue {
    .object([
      "name": .string(name), "state": .string(state), "partitions": .count(partitions),
      "renewed_ms": .count(renewedMilliseconds), "same_devices": .boolean(hasSameDevices),
    ])
  }

  init?(_ json: JSONValue) {
    guard let name = json["name"]?.string else { return nil }
    self.init(
      name: name,
      state: json["state"]?.string ?? "",
      partitions: json["partitions"]?.count ?? 0,
      renewedMilliseconds: json["renewed_ms"]?.count,
      hasSameDevices: json["same_devices"] != false
    )
  }
}

extension StatusReport.Engine {
  var json: JSONValue {
    .object([
      "server": .text(server), "problem": .text(problem), "waiting": .count(waiting),
      "passed": .count(passed),
    ])
  }

  init(_ json: JSONValue) {
    self.init()
    server = json["server"]?.string
    problem = json["problem"]?.string
    waiting = json["waiting"]?.count ?? 0
    passed = json["passed"]?.count ?? 0
  }
}

extension StatusReport.HTTP {
  var json: JSONValue {
    .object([
      "listen": .texts(listen), "connections": .count(connections), "streams": .count(streams),
      "refused": .count(refused),
    ])
  }

  init?(_ json: JSONValue) {
    guard case .object = json else { return nil }
    self.init(listen: json.texts("listen"))
    connections = json["connections"]?.count ?? 0
    streams = json["streams"]?.count ?? 0
    refused = json["refused"]?.count ?? 0
  }
}

extension StatusReport.Problem {
  var json: JSONValue {
    .object([
      "subject": .string(subject), "message": .string(message), "advice": .string(advice),
    ])
  }

  init?(_ json: JSONValue) {
    guard let subject = json["subject"]?.string, let message = json["message"]?.string else {
      return nil
    }
    self.init(subject, message, advice: json["advice"]?.string ?? "")
  }
}

extension JSONValue {
  static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
  static func texts(_ texts: [String]) -> JSONValue { .array(texts.map { .string($0) }) }
  static func count(_ count: Int?) -> JSONValue { count.map { .integer(Int64($0)) } ?? .null }

  /// The elements of a member that can be read.
  func rows<Row>(_ name: String, _ read: (JSONValue) -> Row?) -> [Row] {
    if case .array(let elements) = self[name] { elements.compactMap(read) } else { [] }
  }

  /// The texts of a member.
  func texts(_ name: String) -> [String] { rows(name, \.string) }
}
