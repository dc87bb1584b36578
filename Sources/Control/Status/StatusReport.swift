// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import Values

/// The state of a gateway as facts, with what to do about each red line.
///
/// The gateway answers `{"status":true}` with it. Without a gateway, `settle status` fills in what
/// a gateway would use and what was found.
package struct StatusReport: ListedObject, Hashable, Sendable {
  /// The version of the gateway, or of the program where there is none.
  package var version = ""
  package var isRunning = true
  /// The control socket; without a gateway the one that was tried.
  package var socket: String?
  package var runningMilliseconds: Int?
  /// The files that it reads, with absolute paths; `nil` where nothing was read from files.
  package var files: GatewayFiles?
  package var settings: [Setting] = []
  /// The gateway's own broker first.
  package var brokers: [Broker] = []
  package var devices = Devices()
  package var queue: Queue?
  package var journal: Journal?
  package var http: HTTP?
  /// What was imported while it runs; `nil` where announcements are not followed.
  package var imports: Import?
  /// The cluster that the gateway is a member of; `nil` without one.
  package var cluster: Cluster?
  /// How long ago another gateway was seen on the same base topic.
  package var otherGatewayMilliseconds: Int?
  /// Sections that changed in the files and count only after a restart.
  package var restart: [String] = []
  package var counters: [Counter] = []
  /// Mistakes and warnings in the files, as `file:line:column: message`.
  package var mistakes: [String] = []
  package var warnings: [String] = []
  /// What went wrong at the socket, in words, without a gateway.
  package var socketFailure: String?
  /// Other sockets where a gateway answers.
  package var otherSockets: [String] = []
  /// The red lines; see ``StatusAdvice``.
  package var problems: [Problem] = []

  package init() {}

  package init(version: String, isRunning: Bool) {
    self.version = version
    self.isRunning = isRunning
  }

  package mutating func list(_ members: inout MemberList) {
    members.text("version", &version, isNeeded: true)
    members.flag("running", &isRunning)
    members.text("socket", &socket)
    members.count("running_ms", &runningMilliseconds)
    members.object("files", &files)
    members.objects("problems", &problems)
    members.objects("brokers", &brokers)
    members.object("devices", &devices)
    members.object("queue", &queue)
    members.object("journal", &journal)
    members.object("http", &http)
    members.object("import", &imports, isShort: true)
    members.count("other_gateway_ms", &otherGatewayMilliseconds)
    members.texts("restart", &restart)
    members.member("counters", &counters) { json in
      json.members?.map { Counter($0.name, UInt64($0.value.count ?? 0)) }
    } write: { counters in
      .object(counters.map { .init($0.name, .integer(Int64(clamping: $0.count))) })
    }
    members.objects("settings", &settings)
    members.texts("mistakes", &mistakes)
    members.texts("warnings", &warnings)
    members.text("socket_failure", &socketFailure)
    members.texts("other_sockets", &otherSockets)
    members.included(&cluster)
  }

  /// The setting called `name`.
  package func setting(_ name: String) -> Setting? { settings.first { $0.name == name } }
}

extension StatusReport {
  /// A cluster as one of its members sees it.
  package struct Cluster: ListedObject, Hashable, Sendable {
    package var name = ""
    /// The member that answers.
    package var member = ""
    package var members: [Member] = []
    /// The owner of each partition, by number; `nil` where it has none.
    package var owners: [String?] = []
    package var engine = Engine()
    /// Whether the sessions of this member end as soon as they are made, as where another cluster of
    /// the same name uses the broker.
    package var isContested = false

    package init() {}

    package init(name: String, member: String) {
      self.name = name
      self.member = member
    }

    package mutating func list(_ members: inout MemberList) {
      members.text("cluster", &name, isNeeded: true)
      members.text("member", &member, isNeeded: true)
      members.objects("members", &self.members)
      members.member("partitions", &owners) {
        $0.elements?.map { $0["owner"]?.string }
      } write: { owners in
        .array(owners.enumerated().map { .object(["partition": .count($0), "owner": .text($1)]) })
      }
      members.object("engine", &engine)
      members.flag("contested", &isContested)
    }
  }

  /// A gateway of a cluster.
  package struct Member: ListedObject, Hashable, Sendable {
    package var name = ""
    /// `ready`, `blocked`, `leaving`, `left` or `evicted`.
    package var state = ""
    /// How many partitions it drives.
    package var partitions = 0
    /// How long ago it renewed its lease, as the member that answers has seen it.
    package var renewedMilliseconds: Int?
    /// Whether it has the same device files as most.
    package var hasSameDevices = true
    /// The numbers of the partitions whose logs it cannot read, in order.
    package var unreadable: [Int] = []

    package init() {}

    package mutating func list(_ members: inout MemberList) {
      members.text("name", &name, isNeeded: true)
      members.text("state", &state)
      members.count("partitions", &partitions)
      members.count("renewed_ms", &renewedMilliseconds)
      members.flag("same_devices", &hasSameDevices)
      members.counts("unreadable", &unreadable)
    }

    /// The partitions that it cannot read, such as `partitions 3, 5`; `nil` for none.
    var unreadableText: String? {
      guard !unreadable.isEmpty else { return nil }
      let rest = unreadable.count - Self.shownPartitions
      return (unreadable.count == 1 ? "partition " : "partitions ")
        + unreadable.prefix(Self.shownPartitions).map(String.init).joined(separator: ", ")
        + (rest > 0 ? " and \(rest) more" : "")
    }

    private static let shownPartitions = 8
  }

  /// What keeps the values of a cluster.
  package struct Engine: ListedObject, Hashable, Sendable {
    /// The server that is connected; `nil` without one.
    package var server: String?
    /// Why it cannot be used; `nil` while it can.
    package var problem: String?
    /// Changes that wait until they are stored.
    package var waiting = 0
    /// Requests that wait for other members.
    package var passed = 0
    /// Whether each server writes to its disk before it acknowledges; `nil` where that is unknown.
    package var writesFirst: Bool?
    /// Why a loss of power may lose accepted values, or why that is unknown.
    package var writesReason: String?

    package init() {}

    package mutating func list(_ members: inout MemberList) {
      members.text("server", &server)
      members.text("problem", &problem)
      members.count("waiting", &waiting)
      members.count("passed", &passed)
      members.flag("writes_first", &writesFirst)
      members.text("writes_reason", &writesReason)
    }
  }

  /// A setting in force.
  package struct Setting: ListedObject, Hashable, Sendable {
    package var name = ""
    package var value = ""
    /// `default`, `FILE:LINE`, the name of a variable, or an option.
    package var origin = ""

    package init() {}

    package init(name: String, value: String, origin: String) {
      self.name = name
      self.value = value
      self.origin = origin
    }

    package mutating func list(_ members: inout MemberList) {
      members.text("name", &name, isNeeded: true)
      members.text("value", &value)
      members.text("origin", &origin)
    }
  }

  /// The connection to a broker.
  package struct Broker: ListedObject, Hashable, Sendable {
    package enum State: String, Hashable, Sendable {
      case connected, connecting, waiting, idle
    }

    /// `mqtt` for the gateway's own.
    package var name = ""
    package var url = ""
    /// The connected address in numbers.
    package var address: String?
    package var state = State.idle
    /// How long it has been connected, or not.
    package var sinceMilliseconds: Int?
    /// Why there is no connection: a word for programs, and in words.
    package var trouble: String?
    package var reason: String?
    package var connections = 0
    package var losses = 0
    /// Events and replies that were dropped, because the broker was away or too slow.
    package var dropped = 0
    /// The topics that are held back because the broker drops the connection for what was sent
    /// there.
    package var quarantined: [Quarantine] = []

    package init() {}

    package init(name: String, url: String, state: State) {
      self.name = name
      self.url = url
      self.state = state
    }

    package var isConnected: Bool { state == .connected }

    package mutating func list(_ members: inout MemberList) {
      members.text("name", &name, isNeeded: true)
      members.text("url", &url, isNeeded: true)
      members.text("address", &address)
      members.word("state", &state)
      members.count("since_ms", &sinceMilliseconds)
      members.text("trouble", &trouble)
      members.text("reason", &reason)
      members.count("connections", &connections)
      members.count("losses", &losses)
      members.count("dropped", &dropped)
      members.objects("quarantined", &quarantined)
    }
  }

  /// A topic that is held back.
  package struct Quarantine: ListedObject, Hashable, Sendable {
    package var topic = ""
    /// How long it will be.
    package var milliseconds = 0

    package init() {}

    package init(topic: String, milliseconds: Int) {
      self.topic = topic
      self.milliseconds = milliseconds
    }

    package mutating func list(_ members: inout MemberList) {
      members.text("topic", &topic, isNeeded: true)
      members.count("for_ms", &milliseconds)
    }
  }

  package struct Devices: ListedObject, Hashable, Sendable {
    package var count = 0
    package var keys = 0
    package var awayCount = 0
    /// Some of the devices that are away.
    package var away: [Away] = []
    /// The names of scenes.
    package var scenes: [String] = []
    /// Some of the devices that sleep, and when each reported itself last.
    package var sleepers: [Away] = []
    /// How many have never reported a property.
    package var unheardCount = 0
    /// Some of the properties that have never been reported, although a command was not confirmed.
    package var unheard: [Unheard] = []
    /// Some of the properties whose newest report cannot be read.
    package var unreadable: [Unreadable] = []

    package init() {}

    package mutating func list(_ members: inout MemberList) {
      members.count("count", &count)
      members.count("keys", &keys)
      members.count("away_count", &awayCount)
      members.texts("scenes", &scenes)
      members.objects("away", &away)
      members.objects("sleepers", &sleepers)
      members.count("unheard_count", &unheardCount)
      members.objects("unheard", &unheard)
      members.objects("unreadable", &unreadable)
    }
  }

  package struct Away: ListedObject, Hashable, Sendable {
    package var id = ""
    package var sinceMilliseconds: Int?

    package init() {}

    package init(id: String, sinceMilliseconds: Int?) {
      self.id = id
      self.sinceMilliseconds = sinceMilliseconds
    }

    package mutating func list(_ members: inout MemberList) {
      members.text("id", &id, isNeeded: true)
      members.count("since_ms", &sinceMilliseconds)
    }
  }

  /// A property without a report.
  package struct Unheard: ListedObject, Hashable, Sendable {
    package var key = ""
    /// Where reports are expected.
    package var topic = ""
    /// Where the value is in the payload, as a JSON Pointer.
    package var pointer = ""

    package init() {}

    package init(key: String, topic: String, pointer: String) {
      self.key = key
      self.topic = topic
      self.pointer = pointer
    }

    package mutating func list(_ members: inout MemberList) {
      members.text("key", &key, isNeeded: true)
      members.text("topic", &topic, isNeeded: true)
      members.text("value", &pointer)
    }
  }

  /// A property whose newest report cannot be read.
  package struct Unreadable: ListedObject, Hashable, Sendable {
    package var key = ""
    package var reports = UnreadableRow()

    package init() {}

    package init(key: String, reports: UnreadableRow) {
      self.key = key
      self.reports = reports
    }

    package mutating func list(_ members: inout MemberList) {
      members.text("key", &key, isNeeded: true)
      reports.list(&members)
    }
  }

  /// Values that are not sent yet, and commands in flight.
  package struct Queue: ListedObject, Hashable, Sendable {
    package var limit = 0
    /// Values that wait for quiet.
    package var quiet = 0
    /// Commands that wait for a broker or a device that is away.
    package var offline = 0
    /// Commands that wait for a device that is asleep.
    package var asleep = 0
    /// Commands that the broker has not acknowledged.
    package var inFlight = 0
    /// Commands that the device has not confirmed.
    package var unconfirmed = 0
    package var lanes: [Lane] = []

    package init() {}

    package init(limit: Int) { self.limit = limit }

    package var pending: Int { quiet + offline + asleep + lanes.reduce(0) { $0 + $1.waiting } }

    package mutating func list(_ members: inout MemberList) {
      var pending = pending
      members.count("pending", &pending)
      members.count("limit", &limit, isNeeded: true)
      members.count("quiet", &quiet)
      members.count("offline", &offline)
      members.count("asleep", &asleep)
      members.count("in_flight", &inFlight)
      members.count("unconfirmed", &unconfirmed)
      members.objects("lanes", &lanes)
    }
  }

  package struct Lane: ListedObject, Hashable, Sendable {
    /// Empty for commands whose device has no lane.
    package var name = ""
    /// Commands a second; `nil` without a limit.
    package var rate: Double?
    package var waiting = 0
    package var inFlight = 0
    /// How many commands may be in flight, and what was learned for that; `nil` without a window.
    package var window: Window?

    package init() {}

    package init(name: String, rate: Double?, waiting: Int = 0, inFlight: Int = 0) {
      self.name = name
      self.rate = rate
      self.waiting = waiting
      self.inFlight = inFlight
    }

    package mutating func list(_ members: inout MemberList) {
      members.text("name", &name, isNeeded: true)
      members.member("rate", &rate, read: { .some($0.double) }) {
        $0.map { JSONValue(shortest: $0) } ?? .null
      }
      members.count("waiting", &waiting)
      members.count("in_flight", &inFlight)
      members.object("window", &window)
    }
  }

  package struct Window: ListedObject, Hashable, Sendable {
    package var size = 0
    /// How many commands take up room, those included that the broker has acknowledged.
    package var inUse = 0
    /// How long devices take to confirm, on average; `nil` until one has.
    package var roundTripMilliseconds: Int?
    /// How many commands were not confirmed in time.
    package var lost = 0

    package init() {}

    package mutating func list(_ members: inout MemberList) {
      members.count("size", &size, isNeeded: true)
      members.count("in_use", &inUse)
      members.count("round_trip_ms", &roundTripMilliseconds)
      members.count("lost", &lost)
    }
  }

  package struct Journal: ListedObject, Hashable, Sendable {
    package var path = ""
    /// Why nothing can be written; `nil` while it works.
    package var fault: String?
    /// Whether the disk is full.
    package var isFull = false
    /// Changes whose answer waits for the disk.
    package var waiting = 0

    package init() {}

    package init(path: String) { self.path = path }

    package mutating func list(_ members: inout MemberList) {
      members.text("path", &path, isNeeded: true)
      members.text("fault", &fault)
      members.flag("full", &isFull)
      members.count("waiting", &waiting)
    }
  }

  package struct HTTP: ListedObject, Hashable, Sendable {
    package var listen: [String] = []
    package var connections = 0
    package var streams = 0
    package var refused = 0

    package init() {}

    package init(listen: [String]) { self.listen = listen }

    package mutating func list(_ members: inout MemberList) {
      members.texts("listen", &listen)
      members.count("connections", &connections)
      members.count("streams", &streams)
      members.count("refused", &refused)
    }
  }

  /// What the gateway imports by itself.
  package struct Import: ListedObject, Hashable, Sendable {
    /// The folder that it writes; `nil` before the first import.
    package var folder: String?
    /// How many announcements it knows.
    package var announcements = 0
    /// How many devices and groups the imported files have.
    package var devices = 0
    /// Some of the devices and groups that were added last, how many, and when, in ms since 1970.
    package var (added, addedCount, addedAt): ([String], Int, Int?) = ([], 0, nil)
    /// Some of what the newest import has refused, and how much that is.
    package var (refused, refusedCount): ([Refusal], Int) = ([], 0)
    /// Some of the devices in imported files that are no longer announced, and how many there are.
    package var (gone, goneCount): ([String], Int) = ([], 0)
    /// How long ago the newest import ended.
    package var ageMilliseconds: Int?
    /// Why the gateway has not read what was written; `nil` if it has.
    package var unused: String?
    /// Why nothing can be imported; `nil` if it can.
    package var failure: String?

    package init() {}

    package mutating func list(_ members: inout MemberList) {
      members.text("folder", &folder)
      members.count("announcements", &announcements)
      members.count("devices", &devices)
      members.texts("added", &added)
      members.count("added_count", &addedCount)
      members.count("added_at", &addedAt)
      members.objects("refused", &refused)
      members.count("refused_count", &refusedCount)
      members.texts("gone", &gone)
      members.count("gone_count", &goneCount)
      members.count("age_ms", &ageMilliseconds)
      members.text("unused", &unused)
      members.text("failure", &failure)
    }
  }

  /// Something announced that was not imported.
  package struct Refusal: ListedObject, Hashable, Sendable {
    package var subject = ""
    package var reason = ""

    package init() {}

    package init(subject: String, reason: String) {
      self.subject = subject
      self.reason = reason
    }

    package mutating func list(_ members: inout MemberList) {
      members.text("subject", &subject, isNeeded: true)
      members.text("reason", &reason)
    }
  }

  package struct Counter: Hashable, Sendable {
    package var name: String
    package var count: UInt64

    package init(_ name: String, _ count: UInt64) {
      self.name = name
      self.count = count
    }
  }

  /// One red line.
  package struct Problem: ListedObject, Hashable, Sendable {
    /// What it is about, such as `broker mqtt`.
    package var subject = ""
    package var message = ""
    /// What to do about it.
    package var advice = ""

    package init() {}

    package init(_ subject: String, _ message: String, advice: String) {
      self.subject = subject
      self.message = message
      self.advice = advice
    }

    package mutating func list(_ members: inout MemberList) {
      members.text("subject", &subject, isNeeded: true)
      members.text("message", &message, isNeeded: true)
      members.text("advice", &advice)
    }
  }
}
