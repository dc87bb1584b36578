// Settle
// SPDX-License-Identifier: Apache-2.0

/// The state of a gateway as facts, with what to do about each red line.
///
/// The gateway answers `{"status":true}` with it. Without a gateway, `settle status` fills in what
/// a gateway would use and what was found.
package struct StatusReport: Hashable, Sendable {
  /// The version of the gateway, or of the program where there is none.
  package var version: String
  package var isRunning: Bool
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

  package init(version: String, isRunning: Bool) {
    self.version = version
    self.isRunning = isRunning
  }

  /// The setting called `name`.
  package func setting(_ name: String) -> Setting? { settings.first { $0.name == name } }
}

extension StatusReport {
  /// A cluster as one of its members sees it.
  package struct Cluster: Hashable, Sendable {
    package var name: String
    /// The member that answers.
    package var member: String
    package var members: [Member] = []
    /// The owner of each partition, by number; `nil` where it has none.
    package var owners: [String?] = []
    package var engine = Engine()

    package init(name: String, member: String) {
      self.name = name
      self.member = member
    }
  }

  /// A gateway of a cluster.
  package struct Member: Hashable, Sendable {
    package var name: String
    /// `ready`, `blocked`, `leaving`, `left` or `evicted`.
    package var state: String
    /// How many partitions it drives.
    package var partitions: Int
    /// How long ago it renewed its lease, as the member that answers has seen it.
    package var renewedMilliseconds: Int?
    /// Whether it has the same device files as most.
    package var hasSameDevices: Bool

    package init(
      name: String,
      state: String,
      partitions: Int,
      renewedMilliseconds: Int?,
      hasSameDevices: Bool
    ) {
      self.name = name
      self.state = state
      self.partitions = partitions
      self.renewedMilliseconds = renewedMilliseconds
      self.hasSameDevices = hasSameDevices
    }
  }

  /// What keeps the values of a cluster.
  package struct Engine: Hashable, Sendable {
    /// The server that is connected; `nil` without one.
    package var server: String?
    /// Why it cannot be used; `nil` while it can.
    package var problem: String?
    /// Changes that wait until they are stored.
    package var waiting = 0
    /// Requests that wait for other members.
    package var passed = 0

    package init() {}
  }

  /// A setting in force.
  package struct Setting: Hashable, Sendable {
    package var name: String
    package var value: String
    /// `default`, `FILE:LINE`, the name of a variable, or an option.
    package var origin: String

    package init(name: String, value: String, origin: String) {
      self.name = name
      self.value = value
      self.origin = origin
    }
  }

  /// The connection to a broker.
  package struct Broker: Hashable, Sendable {
    package enum State: String, Hashable, Sendable {
      case connected, connecting, waiting, idle
    }

    /// `mqtt` for the gateway's own.
    package var name: String
    package var url: String
    /// The connected address in numbers.
    package var address: String?
    package var state: State
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

    package init(name: String, url: String, state: State) {
      self.name = name
      self.url = url
      self.state = state
    }

    package var isConnected: Bool { state == .connected }
  }

  /// A topic that is held back.
  package struct Quarantine: Hashable, Sendable {
    package var topic: String
    /// How long it will be.
    package var milliseconds: Int

    package init(topic: String, milliseconds: Int) {
      self.topic = topic
      self.milliseconds = milliseconds
    }
  }

  package struct Devices: Hashable, Sendable {
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
  }

  package struct Away: Hashable, Sendable {
    package var id: String
    package var sinceMilliseconds: Int?

    package init(id: String, sinceMilliseconds: Int?) {
      self.id = id
      self.sinceMilliseconds = sinceMilliseconds
    }
  }

  /// A property without a report.
  package struct Unheard: Hashable, Sendable {
    package var key: String
    /// Where reports are expected.
    package var topic: String
    /// Where the value is in the payload, as a JSON Pointer.
    package var pointer: String

    package init(key: String, topic: String, pointer: String) {
      self.key = key
      self.topic = topic
      self.pointer = pointer
    }
  }

  /// A property whose newest report cannot be read.
  package struct Unreadable: Hashable, Sendable {
    package var key: String
    package var reports: UnreadableRow

    package init(key: String, reports: UnreadableRow) {
      self.key = key
      self.reports = reports
    }
  }

  /// Values that are not sent yet, and commands in flight.
  package struct Queue: Hashable, Sendable {
    package var limit: Int
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

    package init(limit: Int) { self.limit = limit }

    package var pending: Int { quiet + offline + asleep + lanes.reduce(0) { $0 + $1.waiting } }
  }

  package struct Lane: Hashable, Sendable {
    /// Empty for commands whose device has no lane.
    package var name: String
    /// Commands a second; `nil` without a limit.
    package var rate: Double?
    package var waiting = 0
    package var inFlight = 0
    /// How many commands may be in flight, and what was learned for that; `nil` without a window.
    package var window: Window?

    package init(name: String, rate: Double?, waiting: Int = 0, inFlight: Int = 0) {
      self.name = name
      self.rate = rate
      self.waiting = waiting
      self.inFlight = inFlight
    }
  }

  package struct Window: Hashable, Sendable {
    package var size: Int
    /// How many commands take up room, those included that the broker has acknowledged.
    package var inUse: Int
    /// How long devices take to confirm, on average; `nil` until one has.
    package var roundTripMilliseconds: Int?
    /// How many commands were not confirmed in time.
    package var lost: Int

    package init(size: Int, inUse: Int, roundTripMilliseconds: Int?, lost: Int) {
      self.size = size
      self.inUse = inUse
      self.roundTripMilliseconds = roundTripMilliseconds
      self.lost = lost
    }
  }

  package struct Journal: Hashable, Sendable {
    package var path: String
    /// Why nothing can be written; `nil` while it works.
    package var fault: String?
    /// Whether the disk is full.
    package var isFull = false
    /// Changes whose answer waits for the disk.
    package var waiting = 0

    package init(path: String) { self.path = path }
  }

  package struct HTTP: Hashable, Sendable {
    package var listen: [String]
    package var connections = 0
    package var streams = 0
    package var refused = 0

    package init(listen: [String]) { self.listen = listen }
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
  package struct Problem: Hashable, Sendable {
    /// What it is about, such as `broker mqtt`.
    package var subject: String
    package var message: String
    /// What to do about it.
    package var advice: String

    package init(_ subject: String, _ message: String, advice: String) {
      self.subject = subject
      self.message = message
      self.advice = advice
    }
  }
}
