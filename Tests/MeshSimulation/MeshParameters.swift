// Settle
// SPDX-License-Identifier: Apache-2.0

/// What is assumed of a radio mesh; times in milliseconds.
///
/// The values of ``fast``, ``slow`` and ``lossy`` are assumptions within what these sources say:
///
/// - IEEE 802.15.4-2020 at 2.4 GHz: 250 kbit/s, so 32 us a byte; 127 bytes a frame at most; a
///   random backoff of 0 to 7 x 320 us before the first try; an acknowledgement of 11 bytes; 3
///   retries. A command of about 70 bytes keeps the channel for 2.3 ms, with backoff, turnaround
///   and acknowledgement for 4 to 5 ms. Routers add their own time.
/// - Zigbee specification R22: acknowledgements from end to end that are waited for about 1.6 s,
///   and up to 3 retries of the whole way.
/// - Silicon Labs AN1138, "Zigbee Mesh Network Performance": round trips of some ten milliseconds a
///   hop, below 200 ms in all for usual networks.
/// - zigpy-znp issue 42: adapters take 16 messages at a time and say `BUFFER_FULL` to more; 30
///   lights once a second pass without an error in a good network.
/// - zigbee-herdsman issue 450: "requests to the same device will never be send simultaneously", so
///   a newer value does not overtake an older one that is sent again. zigpy pull request 1630 lets
///   two at a time pass, so there it can.
/// - Zigbee specification R22, broadcasts: every router that hears one for the first time sends it
///   once after up to 64 ms, and again, three times in all and half a second apart, while it has
///   not heard all routers around it do the same.
/// - zha issue 422: 17 commands at once fail, 4 at a time with pauses pass.
package struct MeshParameters: Sendable {
  package var name: String
  /// How many hops away lamps are, lamp by lamp, repeated.
  package var hops: [Int]
  /// How long one frame keeps the channel for one hop, on average.
  package var frame: Double
  /// The same for a report, if it differs; 0 for reports that do not need the channel.
  package var reportFrame: Double?
  /// Whether a lamp acknowledges a command by a message of its own.
  package var isAcknowledged = true
  /// How many messages the adapter holds at once; it drops further ones and says nothing.
  package var adapter: Int
  /// The chance that a frame is lost with nobody else sending.
  package var loss: Double
  /// How much that chance grows with each other frame that waits for the channel.
  package var collision: Double
  /// How often a frame is sent, and how often a message, before it is given up.
  package var frameTries = 4
  package var messageTries = 3
  /// How long a sender waits before it sends a message again.
  package var patience = 1600.0
  /// How long a router waits at most before it passes a broadcast on, how often it sends it at
  /// most, and how long it waits for others to do the same.
  package var relayDelay = 64.0
  package var broadcastTries = 3
  package var broadcastPatience = 500.0
  /// How many commands for one lamp the adapter works on at a time; others of that lamp wait in it.
  package var perLamp = 1
  /// How many commands for all lamps it works on at a time.
  package var atOnce = Int.max
  /// How long a lamp takes to act on a command and report it, on average.
  package var lamp: Double
  /// By which part of itself ``lamp`` varies.
  package var jitter = 0.5

  /// A small network with a good adapter.
  package static let fast = MeshParameters(
    name: "fast",
    hops: [1, 1, 2],
    frame: 4.5,
    adapter: 32,
    loss: 0.01,
    collision: 0.004,
    lamp: 60
  )

  /// Long ways, slow routers, slow lamps.
  package static let slow = MeshParameters(
    name: "slow",
    hops: [2, 3, 4],
    frame: 9,
    adapter: 16,
    loss: 0.02,
    collision: 0.008,
    lamp: 150
  )

  /// One frame in five is lost.
  package static let lossy = MeshParameters(
    name: "lossy",
    hops: [1, 2, 3],
    frame: 6,
    adapter: 16,
    loss: 0.2,
    collision: 0.008,
    lamp: 100
  )

  package static let all = [fast, slow, lossy]

  /// This mesh with an adapter that works on two commands for a lamp at a time, so that the newer
  /// one may arrive first.
  package var withOvertaking: MeshParameters {
    var mesh = self
    mesh.perLamp = 2
    mesh.name += ", two at a time"
    return mesh
  }

  /// This mesh with each of its assumptions halved and doubled, one at a time.
  package var variations: [MeshParameters] {
    let fields: [(String, (inout MeshParameters, Double) -> Void)] = [
      ("frame", { $0.frame *= $1 }), ("loss", { $0.loss *= $1 }),
      ("collision", { $0.collision *= $1 }), ("lamp", { $0.lamp *= $1 }),
      ("adapter", { $0.adapter = Int(Double($0.adapter) * $1) }),
    ]
    return fields.flatMap { field, scale in
      [0.5, 2].map { factor in
        var mesh = self
        scale(&mesh, factor)
        mesh.name += ", \(field) x \(factor == 2 ? "2" : "1/2")"
        return mesh
      }
    }
  }
}
