// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
internal import LastOut

/// The full-screen stepper as a value: keys, replies and ticks in, requests and a new state out.
///
/// It owns no terminal, no socket and no clock. Whoever drives it hands in what happened with the
/// moment at which it did, sends what ``takeRequests()`` gives, shows it with ``ScreenRenderer``,
/// and calls ``tick(at:)`` by ``nextTick(after:)`` at the latest.
package struct ControlScreen: Sendable {
  /// The connection to the gateway.
  package enum Link: Hashable, Sendable {
    case connecting
    /// Connected; the properties have not come yet.
    case reading
    case ready
    case lost(reason: String)
  }

  /// What keys mean at the moment.
  package enum Mode: Hashable, Sendable {
    case browsing
    /// A value is typed for the selected property.
    case typing(String)
    /// The filter is typed; `previous` comes back with Escape.
    case filtering(previous: String)
    /// The help is shown, scrolled down by so many lines.
    case help(offset: Int)
  }

  /// A line of the list.
  package enum Line: Hashable, Sendable {
    /// The heading of the device whose first property that is shown is `first`.
    case device(first: Int)
    case property(Int)
    case gap
  }

  /// Something that is said for a few seconds.
  package struct Notice: Hashable, Sendable {
    package let text: String
    package let isBad: Bool
    let until: Moment
  }

  package internal(set) var rows: [ScreenRow] = []
  package internal(set) var lines: [Line] = []
  /// The key of the selected property.
  package internal(set) var selectedKey: String?
  /// The first line of the list that is in view.
  package internal(set) var firstLine = 0
  package internal(set) var filter = ""
  package internal(set) var mode = Mode.browsing
  package internal(set) var notice: Notice?
  package internal(set) var link = Link.connecting
  /// The gateway is connected and has not answered for a while.
  package internal(set) var isSilent = false
  package internal(set) var size: ScreenSize
  /// Nothing more is to be shown.
  package internal(set) var isDone = false

  /// How many devices the properties belong to.
  var deviceCount = 0
  /// The widest name of a property, and the widest unit, in cells.
  var labelWidth = 0
  var unitWidth = 0
  /// What the identifiers of changes begin with.
  let name: String
  var places: [String: Int] = [:]
  var outbox: [ControlRequest] = []
  var lastNumber = 0
  /// Changes without an answer: their identifiers and keys.
  var asked: [String: String] = [:]
  var retryAt = Moment.zero
  var retries = 0
  /// When the values in view are read again.
  var refreshAt: Moment?
  /// Requests for rows without an answer, and since when.
  var openReads = 0
  var readSince: Moment?
  /// The devices are asked for, and not told yet.
  var isDescribing = false

  /// A screen that is not connected yet.
  ///
  /// `name` begins the identifiers of its changes, and must differ from that of any other client.
  package init(name: String, size: ScreenSize, filter: String = "") {
    self.name = name
    self.size = size
    self.filter = filter
  }

  /// The requests to send, in order; each is given once.
  package mutating func takeRequests() -> [ControlRequest] {
    defer { outbox = [] }
    return outbox
  }

  /// The terminal has another size.
  package mutating func resize(to size: ScreenSize) {
    self.size = size
    updateLines()
  }

  /// Nothing more is wanted.
  package mutating func quit() { isDone = true }

  /// The selected property.
  package var selectedRow: ScreenRow? { selectedPlace.map { rows[$0] } }

  var selectedPlace: Int? { selectedKey.flatMap { places[$0] } }

  mutating func say(_ text: String, isBad: Bool = false, at now: Moment) {
    notice = Notice(text: text, isBad: isBad, until: now.advanced(by: .seconds(isBad ? 6 : 3)))
  }
}
