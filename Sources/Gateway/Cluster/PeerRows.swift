// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Engine
import GatewayCore
import JSON
import LastOut
import Operations
import Values

/// What keys show whose devices other members of a cluster drive: every member tells the others
/// what changed, at most once in a tenth of a second for each key.
final class PeerRows {
  private static let pace = Duration.milliseconds(100)
  /// How large a message becomes, in bytes.
  private static let size = 256 * 1024

  private let context: GatewayContext
  private let member: String
  private let engine: ClusterEngine
  private var changed: Set<KeyIndex> = []
  /// Devices that came online or went offline.
  private var devices: Set<Int> = []
  private var flushedAt: Moment?
  /// A key whose row has come from another member.
  var onChange: ((KeyIndex) -> Void)?
  var onAvailability: ((_ device: Int) -> Void)?

  init(_ context: GatewayContext, member: String, engine: ClusterEngine) {
    self.context = context
    self.member = member
    self.engine = engine
  }

  // MARK: - Out

  /// What a key shows has changed.
  func changed(_ key: KeyIndex) {
    guard context.places?.drives(device: context.registry.device(of: key)) ?? false else { return }
    changed.insert(key)
  }

  /// A device came online or went offline.
  func availabilityChanged(of device: Int) {
    if context.places?.drives(device: device) ?? false { devices.insert(device) }
  }

  /// Tells the others what the keys of these devices show: this member drives them from now on.
  func partitionTaken(_ devices: [Int]) {
    self.devices.formUnion(devices)
    for device in devices { addKeys(of: device) }
  }

  private func addKeys(of device: Int) {
    for raw in context.registry.indices(ofDevice: device) {
      let key = KeyIndex(raw)
      let status = context.core.status(key)
      if status.target != nil || status.actual != nil || status.phase != nil { changed.insert(key) }
    }
  }

  /// Asks the others for what their keys show.
  func sayHello() { engine.broadcast(PeerBroadcast.beginning(.hello, from: member).bytes) }

  /// Tells everything, because another member asks.
  func sendAll() {
    guard let places = context.places else { return }
    partitionTaken(context.registry.deviceNumbers.filter { places.drives(device: $0) })
  }

  var nextDeadline: Moment? {
    guard !changed.isEmpty || !devices.isEmpty else { return nil }
    return flushedAt.map { $0.advanced(by: Self.pace) } ?? .zero
  }

  func flush(at now: Moment) {
    guard let due = nextDeadline, due <= now else { return }
    flushedAt = now
    var writer = PeerBroadcast.beginning(.rows, from: member)
    let start = writer.bytes.count
    for device in devices.sorted() {
      let isOnline = context.core.isOnline(device: device)
      writer.bytes.append(isOnline ? 1 : 0)
      writer.append(context.registry.id(ofDevice: device))
    }
    for key in changed.sorted(by: { $0.rawValue < $1.rawValue }) {
      append(key, at: now, to: &writer)
      guard writer.bytes.count > Self.size else { continue }
      engine.broadcast(writer.bytes)
      writer = PeerBroadcast.beginning(.rows, from: member)
    }
    if writer.bytes.count > start { engine.broadcast(writer.bytes) }
    changed = []
    devices = []
  }

  private func append(_ key: KeyIndex, at now: Moment, to writer: inout ByteWriter) {
    let status = context.core.status(key)
    writer.bytes.append(2)
    writer.append(context.registry[key].key)
    writer.append(status.target.map { JSONWriter.bytes($0.json) } ?? [])
    writer.append(status.actual.map { JSONWriter.bytes($0.json) } ?? [])
    writer.append(status.phase?.rawValue ?? "")
    writer.append(status.since.map { UInt64(max(0, $0.milliseconds(to: now))) + 1 } ?? 0)
  }

  // MARK: - In

  /// Shows rows of another member; `isOwner` says whether it drives a device.
  func receive(_ content: inout ByteReader, isOwner: (_ device: Int) -> Bool) {
    let now = EventLoop.now()
    while let kind = content.byte() {
      guard let name = content.text() else { return }
      guard kind == 2 else {
        if let device = context.registry.deviceIndex(ofID: name.utf8.span), isOwner(device) {
          show(device, isOnline: kind == 1, at: now)
        }
        continue
      }
      guard let target = content.bytes(), let actual = content.bytes(), let phase = content.text(),
        let since = content.number()
      else { return }
      guard let key = context.registry.index(ofKey: name.utf8.span),
        isOwner(context.registry.device(of: key))
      else { continue }
      let status = KeyStatus(
        target: value(target, of: key),
        actual: value(actual, of: key),
        phase: Phase(rawValue: phase),
        since: since > 0 ? now.earlier(byMilliseconds: since - 1) : nil
      )
      context.core.show(status, of: key)
      onChange?(key)
    }
  }

  private func show(_ device: Int, isOnline: Bool, at now: Moment) {
    guard !(context.places?.drives(device: device) ?? false) else { return }
    let wasOnline = context.core.isOnline(device: device)
    guard wasOnline != isOnline else { return }
    context.core.sessionChanged(ofDevice: device, isUp: isOnline, at: now)
    context.availabilityChanged(of: device, at: now)
    onAvailability?(device)
  }

  private func value(_ bytes: [UInt8], of key: KeyIndex) -> Value? {
    guard !bytes.isEmpty, let json = try? JSONParser.parse(bytes.span) else { return nil }
    return try? context.registry.definition(of: key).property.kind.value(from: json)
  }

  /// A change was accepted by another member: shows its value before the row comes.
  func accepted(_ json: JSONValue, of key: KeyIndex, at now: Moment) {
    guard let value = try? context.registry.definition(of: key).property.kind.value(from: json)
    else { return }
    var status = context.core.status(key)
    status.target = value
    status.phase = .accepted
    status.since = now
    context.core.show(status, of: key)
    onChange?(key)
  }
}

extension Moment {
  /// The moment so many milliseconds before.
  fileprivate func earlier(byMilliseconds count: UInt64) -> Moment {
    let (span, isTooLong) = count.multipliedReportingOverflow(by: 1_000_000)
    return Moment(nanoseconds: isTooLong || span > nanoseconds ? 0 : nanoseconds - span)
  }
}
