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
  /// The input mode, which decides what keys do.
  package enum Mode: Hashable, Sendable {
    case browsing
    /// Typing a value for the selected property.
    case typing(String)
    /// Typing the filter; Escape restores `previous`.
    case filtering(previous: String)
    /// Showing the help, scrolled down by `offset` lines.
    case help(offset: Int)
    /// Showing everything about the selected property, scrolled down by `offset` lines.
    case details(offset: Int)
  }

  /// A message that is shown for a few seconds.
  package struct Notice: Hashable, Sendable {
    package let text: String
    package let isError: Bool
    let until: Moment
  }

  package internal(set) var rows = RowTable()
  package internal(set) var list: RowList
  package internal(set) var link: ScreenLink
  package internal(set) var mode = Mode.browsing
  package internal(set) var notice: Notice?
  /// The error that was shown last.
  private(set) var lastError: String?
  package private(set) var size: ScreenSize
  /// Whether the user has quit.
  package private(set) var isDone = false

  /// Creates a screen that is not connected.
  ///
  /// `name` is the prefix of its changes' identifiers and must be unique among all clients.
  package init(name: String, size: ScreenSize, filter: String = "") {
    self.size = size
    link = ScreenLink(name: name)
    list = RowList(size: size, filter: filter)
  }

  /// Removes and returns the requests to send, in order.
  package mutating func dequeueRequests() -> [ControlRequest] {
    link.dequeueRequests()
  }

  /// Handles a new size of the terminal.
  package mutating func resize(to size: ScreenSize) {
    self.size = size
    list.resize(to: size, rows)
  }

  /// Ends the screen.
  package mutating func quit() { isDone = true }

  /// The selected property.
  package var selectedRow: ScreenRow? { selectedIndex.map { rows[$0] } }

  var selectedIndex: Int? { list.selectedKey.flatMap(rows.index(of:)) }

  mutating func show(_ text: String, isError: Bool = false, at now: Moment) {
    if isError { lastError = text }
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
