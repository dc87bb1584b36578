// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
internal import LastOut

/// The state of the full-screen stepper: keys, replies and ticks go in, requests come out.
///
/// It owns no terminal, socket or clock. The caller passes each event with its time, sends the
/// requests from ``dequeueRequests()``, draws the screen with ``ScreenRenderer``, and calls ``tick(at:)``
/// no later than ``nextTick(after:)``.
package struct ControlScreen: Sendable {
  /// The connection to the gateway.
  package enum Link: Hashable, Sendable {
    case connecting
    /// Connected, without the list of properties.
    case reading
    case ready
    case lost(reason: String)
  }

  /// The input mode, which decides what keys do.
  package enum Mode: Hashable, Sendable {
    case browsing
    /// Typing a value for the selected property.
    case typing(String)
    /// Typing the filter; Escape restores `previous`.
    case filtering(previous: String)
    /// Showing the help, scrolled down by `offset` lines.
    case help(offset: Int)
  }

  /// A line of the list.
  package enum Line: Hashable, Sendable {
    /// The heading of a device; `first` is the row index of its first property.
    case device(first: Int)
    case property(Int)
    case gap
  }

  /// A message that is shown for a few seconds.
  package struct Notice: Hashable, Sendable {
    package let text: String
    package let isError: Bool
    let until: Moment
  }

  package internal(set) var rows: [ScreenRow] = []
  package internal(set) var lines: [Line] = []
  /// The key of the selected property.
  package internal(set) var selectedKey: String?
  /// The index of the first line in view.
  package internal(set) var firstLine = 0
  package internal(set) var filter = ""
  package internal(set) var mode = Mode.browsing
  package internal(set) var notice: Notice?
  package internal(set) var link = Link.connecting
  /// Whether the connected gateway has not answered for three seconds.
  package internal(set) var isSilent = false
  package internal(set) var size: ScreenSize
  /// Whether the user has quit.
  package internal(set) var isDone = false

  /// The number of devices that the properties belong to.
  var deviceCount = 0
  /// The width of the widest property name, in cells.
  var labelWidth = 0
  /// The width of the widest unit, in cells.
  var unitWidth = 0
  /// The prefix of the identifiers of changes.
  let name: String
  /// The row index of each key.
  var rowIndices: [String: Int] = [:]
  /// Requests that are not sent yet.
  var outbox: [ControlRequest] = []
  /// The number of the last change, which is part of its identifier.
  var lastNumber = 0
  /// The keys of changes without an answer, by identifier.
  var unansweredChanges: [String: String] = [:]
  /// When to connect again.
  var retryAt = Moment.zero
  var retries = 0
  /// When to read the values in view again.
  var refreshAt: Moment?
  /// The number of reads without an answer.
  var openReads = 0
  /// Since when there has been a read without an answer.
  var readSince: Moment?
  /// Whether a request for the devices is without an answer.
  var isDescribing = false

  /// Creates a screen that is not connected.
  ///
  /// `name` is the prefix of its changes' identifiers and must be unique among all clients.
  package init(name: String, size: ScreenSize, filter: String = "") {
    self.name = name
    self.size = size
    self.filter = filter
  }

  /// Removes and returns the requests to send, in order.
  package mutating func dequeueRequests() -> [ControlRequest] {
    defer { outbox = [] }
    return outbox
  }

  /// Handles a new size of the terminal.
  package mutating func resize(to size: ScreenSize) {
    self.size = size
    updateLines()
  }

  /// Ends the screen.
  package mutating func quit() { isDone = true }

  /// The selected property.
  package var selectedRow: ScreenRow? { selectedIndex.map { rows[$0] } }

  var selectedIndex: Int? { selectedKey.flatMap { rowIndices[$0] } }

  mutating func show(_ text: String, isError: Bool = false, at now: Moment) {
    let time = Duration.seconds(isError ? 6 : 3)
    notice = Notice(text: text, isError: isError, until: now.advanced(by: time))
  }
}

/// The size of a terminal, in cells.
package struct ScreenSize: Hashable, Sendable {
  package var columns: Int
  package var rows: Int

  package init(columns: Int, rows: Int) {
    self.columns = columns
    self.rows = rows
  }
}
