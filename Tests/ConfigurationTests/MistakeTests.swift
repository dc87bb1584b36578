// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import JSON
import Testing

struct MistakeTests {
  @Test(arguments: try Mistake.all(in: "device-mistakes.txt"))
  func `a mistake in a device file is reported with its position`(mistake: Mistake) throws {
    #expect(try Loading.mistakes(inDevices: mistake.text) == mistake.lines)
  }

  @Test(arguments: try Mistake.all(in: "settings-mistakes.txt"))
  func `a mistake in the settings is reported with its position`(mistake: Mistake) throws {
    #expect(try Loading.mistakes(inSettings: mistake.text) == mistake.lines)
  }

  @Test func `one run reports the mistakes of all files, in order`()
    throws
  {
    let (outcome, folder) = try Loading.run(
      settings: "ttl: soon\ndevices: ../devices\nmqqt: {}",
      devices: [
        "b.yaml": "two: {profile: wled/light, topic: b}\nthree: {profile: nope, topic: c}",
        "a.yaml": "one:\n  properties:\n    p: {type: x, command: {topic: t, qos: 9}}",
      ]
    )
    guard case .refused(let problems) = outcome else {
      Issue.record("The files were taken.")
      return
    }
    #expect(
      Loading.lines(problems, in: folder).map { $0.prefix { $0 != " " } } == [
        "settle.yaml:1:6:", "settle.yaml:3:1:", "a.yaml:3:15:", "a.yaml:3:43:", "b.yaml:2:18:",
      ]
    )
  }

  @Test func `a device in two files is reported with its first position`() throws {
    let (outcome, folder) = try Loading.run(devices: [
      "a.yaml": "\nd: {profile: wled/light, topic: a}",
      "b.yaml": "d: {profile: wled/light, topic: b}",
    ])
    guard case .refused(let problems) = outcome else {
      Issue.record("The files were taken.")
      return
    }
    #expect(
      Loading.lines(problems, in: folder) == [
        "b.yaml:1:1: device 'd' is already defined at /config/../devices/a.yaml:2:1"
      ]
    )
  }

  @Test(arguments: [
    // The fields of a boolean, without its command, and whether `ends` has an effect.
    ("ends: [q]", false), ("urgent: [], ends: [q]", false), ("urgent: [off], ends: [q]", true),
    ("ends: []", true), ("urgent: []", true),
  ])
  func `ends without urgent values is reported as a warning`(fields: String, isOfUse: Bool) throws {
    let (outcome, folder) = try Loading.run(devices: [
      "d.yaml": """
      d:
        properties:
          q: {type: boolean, command: {topic: t}}
          p: {type: boolean, command: {topic: u}, \(fields)}
      """
    ])
    guard case .loaded(let loaded) = outcome else {
      Issue.record("The file was refused.")
      return
    }
    let column = fields.hasPrefix("urgent: []") ? 63 : 51
    #expect(
      Loading.lines(loaded.warnings, in: folder)
        == (isOfUse
          ? []
          : [
            "d.yaml:4:\(column): ends: has no effect, because 'p' has no 'urgent' values: only an urgent "
              + "value ends other commands; allowed: 'urgent' with a list of values of its type"
          ])
    )
  }

  @Test func `a device that switches off urgent gets no warning for its profile's ends`()
    throws
  {
    let (outcome, _) = try Loading.run(devices: [
      "d.yaml": """
      d:
        profile: zigbee2mqtt/cover
        topic: zigbee2mqtt/d
        properties:
          command: {urgent: []}
      """
    ])
    guard case .loaded(let loaded) = outcome else {
      Issue.record("The file was refused.")
      return
    }
    #expect(loaded.warnings == [])
  }

  @Test func `a syntax error does not hide mistakes before it`() throws {
    let text = "one: {profile: nope, topic: a}\ntwo: {profile: wled/light\nthree: 5\n"
    let lines = try Loading.mistakes(inDevices: text)
    #expect(lines.count == 2)
    #expect(lines[0].hasPrefix("d.yaml:1:16: unknown profile 'nope'"))
    #expect(lines[1].contains("YAML syntax"))
  }

  @Test func `a lane that the settings do not define is a mistake only if they define lanes`()
    throws
  {
    let device = "d: {profile: wled/light, topic: a, lane: zigbe}"
    #expect(try Loading.mistakes(inDevices: device) == [])
    #expect(
      try Loading.mistakes(
        inDevices: device,
        settings: "devices: ../devices\nlanes: {zigbee: {rate: 10/s}}"
      ) == [
        "d.yaml:1:42: unknown lane 'zigbe'; the settings define: zigbee; did you mean 'zigbee'?"
      ]
    )
  }

  @Test func `a mistake is a line of text or one JSON object`() {
    let error = ConfigurationProblem(
      file: "a.yaml",
      line: 3,
      column: 4,
      message: "wrong",
      suggestion: "right"
    )
    let warning = ConfigurationProblem(file: "b.yaml", line: 1, column: 1, message: "odd")
    #expect(error.description == "a.yaml:3:4: wrong; did you mean 'right'?")
    #expect(warning.description == "b.yaml:1:1: odd")
    #expect(
      JSONWriter.text(error.json(severity: "error"))
        == #"{"file":"a.yaml","line":3,"column":4,"severity":"error","message":"wrong","#
        + #""suggestion":"right"}"#
    )
    #expect(
      JSONWriter.text(warning.json(severity: "warning"))
        == #"{"file":"b.yaml","line":1,"column":1,"severity":"warning","message":"odd","#
        + #""suggestion":null}"#
    )
  }
}
