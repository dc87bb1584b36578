// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Values

/// The devices of every run; each value is a number, so that devices show which change they got.
enum ClusterHouse {
  static let devices = (0..<16).map { number in
    Device(
      id: "lamp-\(number)",
      name: "Lamp \(number)",
      properties: [
        level(
          "level",
          of: number,
          Policy(delay: .milliseconds(number.isMultiple(of: 3) ? 0 : 300))
        ),
        level("tone", of: number, Policy(delay: .milliseconds(800), maxWait: .seconds(3))),
      ]
    )
  }

  private static func level(_ id: String, of device: Int, _ policy: Policy) -> Property {
    var property = Property(
      id: id,
      kind: .number(NumberRule(range: 0...1_000_000_000, step: 1)),
      policy: policy,
      command: CommandEndpoint(
        topic: "lamp-\(device)/\(id)/set",
        payload: PayloadTemplate("$value")
      )
    )
    property.ttl = .seconds(3600)
    return property
  }
}
