// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
package import Devices
internal import JSON
package import LastOut
package import Operations
import Values

/// Plays a script over MQTT: one message per change, at its time.
package final class ScriptPlayer {
  /// Called when an act starts.
  package var onAct: ((DemoScript.Act) -> Void)?
  /// Called right before a change of a key is published.
  package var onChange: ((KeyIndex, ControlRequest, Moment) -> Void)?

  private let script: DemoScript
  private let speed: Double
  private let registry: Registry
  private let link: DemoLink
  private var timer: LoopTimer?
  private var start = Moment.zero
  private var nextAct = 0
  private var nextChange = 0

  /// - Parameters:
  ///   - script: The script to play.
  ///   - speed: The factor by which it plays faster; policies do not change.
  ///   - registry: The keys.
  ///   - link: The connection that publishes changes.
  ///   - loop: The loop whose timer is used.
  /// - Throws: ``OperationsError`` when the timer cannot be created.
  package init(
    _ script: DemoScript,
    speed: Double,
    registry: Registry,
    link: DemoLink,
    loop: EventLoop
  ) throws(OperationsError) {
    self.script = script
    self.speed = speed
    self.registry = registry
    self.link = link
    timer = try loop.makeTimer { [weak self] in self?.play() }
  }

  /// Whether everything has been played.
  package var isDone: Bool { nextChange == script.changes.count }

  /// Starts to play; `start` is the time zero of the script.
  package func begin(at start: Moment) {
    self.start = start
    play()
  }

  private func moment(_ milliseconds: Double) -> Moment {
    start.advanced(by: .nanoseconds(Int64(milliseconds * 1_000_000 / speed)))
  }

  private func play() {
    let now = EventLoop.now()
    while nextAct < script.acts.count, moment(script.acts[nextAct].at) <= now {
      onAct?(script.acts[nextAct])
      nextAct += 1
    }
    while nextChange < script.changes.count, moment(script.changes[nextChange].at ?? 0) <= now {
      publish(script.changes[nextChange])
      nextChange += 1
    }
    let act = nextAct < script.acts.count ? moment(script.acts[nextAct].at) : nil
    let change = isDone ? nil : moment(script.changes[nextChange].at ?? 0)
    timer?.arm(at: [act, change].compactMap { $0 }.min())
  }

  /// Publishes several properties of a device in one message.
  private func publish(_ members: [JSONValue.Member], of request: ControlRequest) {
    let now = EventLoop.now()
    let keys = members.compactMap { try? registry.index(of: "\(request.key)/\($0.name)") }
    for key in keys { onChange?(key, request, now) }
    link.publish("settle/\(request.key)/set", JSONWriter.bytes(.object(members)))
    guard request.now else { return }
    for key in keys { link.publish("settle/\(registry[key].key)/flush", []) }
  }

  private func publish(_ request: ControlRequest) {
    if let members = request.deviceMembers { return publish(members, of: request) }
    for key in keys(of: request) {
      let now = EventLoop.now()
      let name = registry[key].key
      switch request.operation {
      case .set(let value):
        onChange?(key, request, now)
        let payload = JSONValue.object(["value": value, "source": "demo"])
        link.publish("settle/\(name)/set", JSONWriter.bytes(payload))
      case .step(let amount):
        onChange?(key, request, now)
        var payload: [UInt8] = []
        amount.json.appendBare(to: &payload)
        link.publish("settle/\(name)/step", payload)
      case .toggle:
        onChange?(key, request, now)
        link.publish("settle/\(name)/toggle", [])
      case .flush: link.publish("settle/\(name)/flush", [])
      case .cancel: link.publish("settle/\(name)/cancel", [])
      case .scene, .get, .pending, .watch, .describe, .record, .reload, .status, .log, .devices:
        preconditionFailure("A script has changes, flush and cancel only.")
      }
      if request.now { link.publish("settle/\(name)/flush", []) }
    }
  }

  private func keys(of request: ControlRequest) -> [KeyIndex] {
    if let key = try? registry.index(of: request.key) { return [key] }
    return registry.indices(matching: request.key)
  }
}
