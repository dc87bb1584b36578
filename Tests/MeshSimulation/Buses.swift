// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOutTesting

/// Six ways from a bridge to its devices, and random houses with each.
///
/// A model of ``Mesh`` with other figures: times in milliseconds, which a house halves or doubles.
/// What these sources do not say is an assumption: how much a bridge holds, how soon devices act.
///
/// - Z-Wave: 100 kbit/s, a frame again on each hop, acknowledged at once. The serial interface
///   carries one command at a time, until it is acknowledged or given up after three attempts
///   (Z-Wave Host API specification; node-zwave-js issue 5471); drivers hold any number.
/// - KNX TP: 9,600 bit/s, at most 50 telegrams a second with their acknowledgements; three
///   repetitions; what two devices send at once is not destroyed. A router says `ROUTING_BUSY` when
///   what it holds takes 100 ms, and drops what it has no room for (KNX Scientific Conference 2010,
///   "KNX IP – using IP networks as KNX medium"). Status telegrams take the same line.
/// - DALI: IEC 62386 at 1,200 bit/s: 31.2 ms for a frame of 16 bits, 46.7 ms with an answer
///   (Beckhoff TwinCAT DALI manual). No command is acknowledged; the gateway asks for the level.
/// - Hue bridge: about ten requests a second for lamps, and `429 Too Many Requests` above; what
///   lamps report is told by its event stream, without a request.
/// - Thread: as Zigbee, on IEEE 802.15.4. Matter repeats a message four times after 0.3 s and more
///   (Matter core specification, message reliability protocol).
extension MeshParameters {
  package static let zigbee = MeshParameters(
    name: "Zigbee",
    hops: [1, 2, 3],
    frame: 6,
    adapter: 16,
    loss: 0.02,
    collision: 0.006,
    lamp: 100
  )

  package static let zWave = MeshParameters(
    name: "Z-Wave",
    hops: [1, 1, 2, 3],
    frame: 15,
    isAcknowledged: false,
    adapter: 1000,
    loss: 0.02,
    collision: 0.002,
    frameTries: 3,
    patience: 500,
    atOnce: 1,
    lamp: 60
  )

  package static let knx = MeshParameters(
    name: "KNX",
    hops: [1],
    frame: 20,
    isAcknowledged: false,
    adapter: 20,
    loss: 0.001,
    collision: 0,
    messageTries: 1,
    lamp: 40
  )

  package static let dali = MeshParameters(
    name: "DALI",
    hops: [1],
    frame: 31.2,
    reportFrame: 46.7,
    isAcknowledged: false,
    adapter: 16,
    loss: 0,
    collision: 0,
    frameTries: 1,
    messageTries: 1,
    lamp: 15
  )

  package static let hue = MeshParameters(
    name: "Hue",
    hops: [1],
    frame: 100,
    reportFrame: 0,
    isAcknowledged: false,
    adapter: 10,
    loss: 0,
    collision: 0,
    messageTries: 1,
    lamp: 150
  )

  package static let thread = MeshParameters(
    name: "Thread",
    hops: [1, 2, 2, 3],
    frame: 6,
    adapter: 64,
    loss: 0.02,
    collision: 0.006,
    messageTries: 5,
    patience: 400,
    lamp: 80
  )

  package static let buses = [zigbee, zWave, knx, dali, hue, thread]

  /// A house with this bus: each figure between half and twice as large, 5 to 80 lamps at random
  /// distances.
  package func house(seed: UInt64) -> (mesh: MeshParameters, lamps: Int) {
    var generator = SeededGenerator(seed: seed)
    /// A factor between a half and 2.
    func factor() -> Double {
      let part = Double(generator.below(1 << 20)) / Double(1 << 20)
      return 0.5 * (1 + part) * (1 + part)
    }
    var mesh = self
    let time = factor()
    mesh.frame *= time
    mesh.reportFrame = reportFrame.map { $0 * time }
    mesh.loss *= factor()
    mesh.collision *= factor()
    mesh.lamp *= factor()
    mesh.patience *= factor()
    mesh.adapter = max(5, Int(Double(adapter) * factor()))
    let lamps = 5 + generator.below(76)
    mesh.hops = (0..<lamps).map { _ in hops[generator.below(hops.count)] }
    return (mesh, lamps)
  }

  /// Milliseconds that no schedule of a scene can beat on average: the channel carries every frame
  /// once, those that are lost again, and no lamp answers sooner than it acts.
  package func bound(lamps: Int) -> Double {
    let acknowledgement = isAcknowledged ? frame : 0
    let report = reportFrame ?? frame
    let ways = (0..<lamps).map { Double(hops[$0 % hops.count]) }
    let carried = ways.reduce(0, +) * (frame + acknowledgement + report) / (1 - loss)
    let longest = (ways.max() ?? 0) * (frame + report) / (1 - loss) + lamp
    let last = reportFrame == 0 ? lamp * (1 - jitter / 2) : 0
    return max(carried + last, longest)
  }
}
