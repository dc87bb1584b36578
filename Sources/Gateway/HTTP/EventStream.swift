// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import HTTP
import LastOut

/// One client of `GET /v1/events`: a place in the shared buffer, and no bytes of its own.
final class EventStream: ResponseStream {
  let exchange: HTTPExchange
  let pattern: Pattern?
  /// The number of the next event it gets.
  var cursor: UInt64
  /// What else it has not been told of; `nil` where it wants events only.
  var news: StateNews?
  /// When something was last given to it.
  var spokeAt: Moment
  /// Nothing is left for it to send.
  private(set) var isWaiting = false
  private var opening: [UInt8]
  private var wantsHeartbeat = false
  private var isEnding = false
  private unowned let surface: HTTPSurface

  init(
    exchange: HTTPExchange,
    surface: HTTPSurface,
    pattern: Pattern?,
    cursor: UInt64,
    opening: [UInt8],
    wantsStates: Bool,
    at now: Moment
  ) {
    self.exchange = exchange
    self.surface = surface
    self.pattern = pattern
    self.cursor = cursor
    self.opening = opening
    spokeAt = now
    news = wantsStates ? StateNews() : nil
  }

  /// Whether it is about a key.
  func wants(_ key: String) -> Bool { news != nil && pattern?.matches(key) ?? true }

  func next(_ room: Int) -> ResponsePiece {
    isWaiting = false
    if !opening.isEmpty {
      defer { opening = [] }
      return .bytes(opening)
    }
    if cursor < surface.buffer.first {
      // More came at once than is kept.
      let gap = EventStreamText.gap(after: String(cursor - 1), until: surface.buffer.first)
      cursor = surface.buffer.first
      return .bytes(gap)
    }
    var bytes: [UInt8] = []
    surface.buffer.read(from: &cursor, matching: pattern, room: room, into: &bytes)
    // Where things stand is told after how they came to stand there.
    if bytes.isEmpty, news != nil { tellNews(room: room, into: &bytes) }
    if bytes.isEmpty, wantsHeartbeat { bytes = EventStreamText.heartbeat }
    wantsHeartbeat = false
    if !bytes.isEmpty { return .bytes(bytes) }
    if isEnding { return .end }
    isWaiting = true
    return .wait
  }

  /// Sends what has come for it; `now` is remembered.
  func wake(at now: Moment) {
    guard isWaiting else { return }
    if cursor >= surface.buffer.first {
      surface.buffer.skip(from: &cursor, matching: pattern)
    }
    guard cursor < surface.buffer.next || news?.isEmpty == false else { return }
    spokeAt = now
    isWaiting = false
    exchange.wake()
  }

  private func tellNews(room: Int, into bytes: inout [UInt8]) {
    guard var news, !news.isEmpty else { return }
    surface.tell(&news, room: room, into: &bytes)
    self.news = news
  }

  /// Shows that the connection lives, so that a client that is gone is noticed.
  func beat(at now: Moment) {
    spokeAt = now
    wantsHeartbeat = true
    guard isWaiting else { return }
    isWaiting = false
    exchange.wake()
  }

  /// Says what there is, and ends.
  func end() {
    isEnding = true
    guard isWaiting else { return }
    isWaiting = false
    exchange.wake()
  }
}
