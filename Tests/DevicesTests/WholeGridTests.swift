// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Testing
import Values

@Suite struct WholeGridTests {
  static let rules: [NumberRule] = [
    NumberRule(),
    NumberRule(step: 1),
    NumberRule(step: 5),
    NumberRule(range: 0...254, step: 1),
    NumberRule(range: 5...30, step: 0.5),
    NumberRule(range: 3...100, step: 7),
    NumberRule(range: -20...20.7, step: 0.1),
    NumberRule(range: -0.5...10, step: 0.5),
    NumberRule(range: 0...10, step: 0.3),
    NumberRule(range: -1e15...1e15, step: 0.25),
    NumberRule(range: 150...500),
  ]
  static let payloads = [
    "0", "-0", "1", "3", "5", "007", "10", "17", "20", "21", "30", "254", "255", "-1", "-20", "-21",
    "20.5", "1e2", "+5", " 5", "5 ", "", "-", "--1", "1-", "x", "999999999999999",
    "-999999999999999", "1000000000000000", "123456789012345678901",
  ]

  @Test(arguments: rules)
  func `digits in a payload read like text`(rule: NumberRule) throws {
    for kind in [ValueKind.number(rule), .integer(rule)] {
      let property = Property(
        id: "level",
        kind: kind,
        policy: .standard,
        command: CommandEndpoint(topic: "c", payload: PayloadTemplate(.string("$value")))
      )
      let registry = Registry([Device(id: "lamp", name: "Lamp", properties: [property])])
      for payload in Self.payloads {
        let bytes = Array(payload.utf8)
        let found = Result { try registry.value(fromPayload: bytes.span, of: KeyIndex(0)) }
        let expected = Result { try property.value(from: .string(payload)) }
        switch (found, expected) {
        case (.success(let found), .success(let expected)):
          #expect(found == expected, "\(payload) in \(rule)")
        case (.failure(let found), .failure(let expected)):
          #expect("\(found)" == "\(expected)", "\(payload) in \(rule)")
        case (.success, .failure), (.failure, .success):
          Issue.record("\(payload) in \(rule): \(found), not \(expected)")
        }
      }
    }
  }

  @Test(arguments: [
    (Int64.min, "-9223372036854775808"), (-10, "-10"), (-1, "-1"), (0, "0"), (9, "9"), (10, "10"),
    (Int64.max, "9223372036854775807"),
  ])
  func `integers are written with all their digits`(number: Int64, text: String) {
    #expect(JSONWriter.text(.integer(number)) == text)
  }
}
