// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import HTTP
import JSON
import LastOut
import Operations

/// Where keys stand, for those streams that ask for it: a device that is changed by hand, or comes
/// and goes, has no event.
extension HTTPSurface {
  /// Something about a key changed.
  func changed(_ key: KeyIndex) {
    guard stateStreams > 0 else { return }
    for stream in streams.values where stream.wants(registryKey(key)) { stream.news?.note(key) }
    hasNews = true
  }

  /// A device came or went.
  func availabilityChanged(ofDevice device: Int) {
    guard stateStreams > 0 else { return }
    for raw in gateway.registry.indices(ofDevice: device) { changed(KeyIndex(raw)) }
  }

  /// The broker came or went.
  func brokerConnectionChanged() {
    guard stateStreams > 0 else { return }
    for stream in streams.values { stream.news?.tellsBroker = true }
    hasNews = true
  }

  /// The devices were read anew.
  func devicesChanged() {
    guard stateStreams > 0 else { return }
    for stream in streams.values { stream.news?.tellsDevices = true }
    hasNews = true
  }

  /// Appends what a stream has not been told of, at most `room` bytes beyond its first piece.
  func tell(_ news: inout StateNews, room: Int, into output: inout [UInt8]) {
    if news.tellsDevices {
      news.tellsDevices = false
      output += EventStreamText.named("devices", JSONWriter.bytes(.object([])))
    }
    if news.tellsBroker {
      news.tellsBroker = false
      let json = JSONValue.object(["connected": .boolean(gateway.isConnected)])
      output += EventStreamText.named("broker", JSONWriter.bytes(json))
    }
    let now = EventLoop.now()
    while output.count < room, let key = news.next() {
      // A key that was taken out meanwhile has gone with its device.
      guard !gateway.registry.properties[Int(key.rawValue)].isRetired else { continue }
      let row = JSONValue.object(gateway.stateMembers(key, at: now))
      output += EventStreamText.named("state", JSONWriter.bytes(row))
    }
  }

  private func registryKey(_ key: KeyIndex) -> String {
    gateway.registry.properties[Int(key.rawValue)].key
  }

  // MARK: - Failures

  /// Remembers how a key's command came to nothing, until its next one ends.
  func remember(_ event: EventObject) {
    switch event.phase {
    case .failed, .expired: failures[event.key] = event
    case .confirmed, .unchanged, .sent, .cancelled: failures[event.key] = nil
    case .accepted, .superseded, .rejected, .sending: break
    }
  }

  /// How the newest command of a key came to nothing; `nil` if it did not.
  func failure(of key: String, in phase: Phase?) -> EventObject? {
    failures[key].flatMap { $0.phase == phase ? $0 : nil }
  }
}
