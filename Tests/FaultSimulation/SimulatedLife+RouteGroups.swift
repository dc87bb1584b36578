// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import GatewayCore
import JSON
import LastOut
import LastOutTesting
import Routing

/// Messages that a route carries to the lamps of a bridge and to its groups.
extension SimulatedLife {
  /// Announces the bridge's lamps and groups.
  func announceRouteGroups() {
    let addresses = ["0x1", "0x2", "0x3"]
    let devices = addresses.map { address in
      JSONValue.object([
        .init("ieee_address", .string(address)),
        .init("friendly_name", .string("l\(address.last ?? "0")")),
      ])
    }
    let groups = RouteGroupLedger.reach.sorted { $0.key < $1.key }.filter { $0.value.count > 1 }
    let announced = groups.map { name, lamps in
      JSONValue.object([
        .init("friendly_name", .string(name)),
        .init(
          "members",
          .array(lamps.map { .object([.init("ieee_address", .string(addresses[$0]))]) })
        ),
      ])
    }
    for (list, value) in [("devices", JSONValue.array(devices)), ("groups", .array(announced))] {
      let topic = Array("direct/bridge/\(list)".utf8)
      let payload = JSONWriter.bytes(value)
      if !core.readAnnouncement(payload.span, topic: topic.span, broker: 1) {
        fail("an announcement is not read")
      }
    }
  }

  /// Publishes some messages for lamps and groups.
  func groupedMessages() {
    if groupRandom.chance(5) { announceRouteGroups() }
    repeat { groupedMessage() } while breach == nil && groupRandom.chance(60)
  }

  private func groupedMessage() {
    wake()
    guard breach == nil, !core.isShuttingDown else { return }
    noteExpiredRoutes()
    seen[.grouped] += 1
    let names = RouteGroupLedger.reach.keys.sorted()
    var message = RouteGroupLedger.Message(
      number: seen[.grouped],
      name: names[groupRandom.below(names.count)],
      power: groupRandom.chance(40) ? groupRandom.chance(40) : nil,
      hasBrightness: groupRandom.chance(40),
      hasColor: groupRandom.chance(30),
      at: now
    )
    if message.power == false { message.hasBrightness = false }
    if message.power == nil, !message.hasColor { message.hasBrightness = true }
    let name = Array("z2m/\(message.name)/set".utf8)
    let document = JSONValue.object(message.members)
    if isTraced { log("z2m/\(message.name)/set carries \(JSONWriter.text(document))") }
    let rejected = core.rejectedCount(.overflow)
    core.route(
      JSONWriter.bytes(document).span,
      document: document,
      for: core.outputs(fedBy: name.span, broker: 0),
      topic: name.span,
      retained: false,
      trail: "",
      mark: "here",
      at: now
    )
    if core.rejectedCount(.overflow) == rejected { lamps.received(message) }
  }

  /// Performs the forwarding of a message for a lamp or a group.
  func forwardGrouped(_ publish: RouteMachine.Publish) {
    guard world.isFarConnected else {
      return fail("a routed message is sent to an offline broker")
    }
    if let wrong = lamps.forwarded(publish) { return fail(wrong) }
    let isLost = !isFaultFree && groupRandom.chance(probabilities.lostAnswer)
    agenda.plan(
      .routeAnswer(publish.number, isLost ? .lost : .acknowledged, life: seen[.restarts]),
      at: now.advanced(by: .milliseconds(groupRandom.within(0...(isFaultFree ? 40 : 400))))
    )
  }

  /// Messages that waited too long for their broker need not arrive.
  func noteExpiredRoutes() {
    guard core.expiredRouteCount != expiredRoutes else { return }
    expiredRoutes = core.expiredRouteCount
    lamps.expired()
  }
}
