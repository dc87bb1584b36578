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

  @Test func `restore counts for properties with a state, and a device that says when it is away`()
    throws
  {
    func load(_ device: String, _ property: String = "") throws -> (Registry?, [String]) {
      let (outcome, folder) = try Loading.run(devices: [
        "d.yaml": """
        d:
          restore: true
          \(device)
          properties:
            p: {type: boolean, command: {topic: x/set}, state: {topic: x/state}\(property)}
            q: {type: boolean, command: {topic: x/q}}
            a: {type: action, values: [go], command: {topic: x/a}}
        """
      ])
      switch outcome {
      case .loaded(let loaded):
        return (loaded.registry, Loading.lines(loaded.warnings, in: folder))
      case .refused(let problems): return (nil, Loading.lines(problems, in: folder))
      }
    }
    let own = "availability: [{topic: bridge/state}, {topic: x/online}]"
    let (registry, warnings) = try load(own)
    #expect(warnings.isEmpty)
    #expect(registry?.devices.first?.properties.map(\.restore) == [true, false, false])
    let (without, _) = try load(own, ", restore: false")
    #expect(without?.devices.first?.properties.map(\.restore) == [false, false, false])
    let effect = "d.yaml:2:12: restore: has no effect, because the device has no 'availability'"
    #expect(
      try load("availability: {topic: bridge/state}").1
        == [effect + " of its own that says when it returns"]
    )
    #expect(try load("").1 == [effect + " that says when it returns"])
    #expect(
      try load(own, ", confirm: {backoff: 11}").1.first?.contains(
        "backoff: found '11', expected 1 to 10"
      ) == true
    )
    // The channels of one device, which is away by one topic.
    let (outcome, _) = try Loading.run(devices: [
      "d.yaml": """
      one: {profile: shelly/gen2-switch, topic: plus2, parameters: {channel: 0}, restore: true}
      two: {profile: shelly/gen2-switch, topic: plus2, parameters: {channel: 1}, restore: true}
      """
    ])
    guard case .loaded(let channels) = outcome else {
      Issue.record("The file was refused.")
      return
    }
    for device in channels.registry.devices {
      #expect(device.availability.allSatisfy { device.isOwn($0, isShared: true) })
    }
    let (patient, _) = try load(own, ", confirm: {retries: 3, backoff: 1.5}")
    #expect(patient?.devices.first?.properties.first?.confirm?.backoff == 1.5)
  }

  @Test(arguments: [
    ("range: [0, 254]", "range: [0, 100]", true),
    ("range: [0, 254]", "range: [0, 254]", false),
    ("range: [0, 254]", "range: [0, 100], unit: '%'", true),
    ("range: [153, 500], unit: mired", "range: [250, 454], unit: mired", false),
    ("range: [0, 254]", "step: 1", false),
  ])
  func `members of a group that count differently are reported as a warning`(
    first: String,
    second: String,
    isWarned: Bool
  ) throws {
    let (outcome, folder) = try Loading.run(devices: [
      "d.yaml": """
      a: {properties: {level: {type: integer, \(first), command: {topic: t}}}}
      b: {properties: {level: {type: integer, \(second), command: {topic: u}}}}
      groups:
        both: {members: [a, b]}
      """
    ])
    guard case .loaded(let loaded) = outcome else {
      Issue.record("The file was refused.")
      return
    }
    let unit = second.contains("unit") ? " %" : ""
    #expect(
      Loading.lines(loaded.warnings, in: folder)
        == (isWarned
          ? [
            "d.yaml:4:3: group 'both': 'level' of a is 0 to 254, and of b 0 to 100\(unit); all members "
              + "get the same number, also for a percentage, which is of what these ranges have in "
              + "common"
          ]
          : [])
    )
  }

  @Test func `an action of a device that sleeps is reported as a warning`() throws {
    let (outcome, folder) = try Loading.run(devices: [
      "d.yaml": """
      d:
        awake: {topic: a}
        properties:
          p: {type: action, values: [go], command: {topic: t}}
      """
    ])
    guard case .loaded(let loaded) = outcome else {
      Issue.record("The file was refused.")
      return
    }
    #expect(
      Loading.lines(loaded.warnings, in: folder) == [
        "d.yaml:2:10: awake: 'p' is an action, and actions do not wait: it is refused while the device "
          + "sleeps, which is until it reports itself"
      ]
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

  @Test(arguments: [nil, "devices: ../devices\nlanes: {}"])
  func `a lane has no effect where the settings define none, which is a warning for each name`(
    settings: String?
  ) throws {
    let (outcome, folder) = try Loading.run(
      settings: settings,
      devices: [
        "d.yaml": """
        a: {profile: wled/light, topic: a, lane: zigbe}
        b: {profile: wled/light, topic: b, lane: zigbe}
        c: {profile: wled/light, topic: c, lane: none}
        """
      ]
    )
    guard case .loaded(let loaded) = outcome else {
      Issue.record("The file was refused.")
      return
    }
    #expect(
      Loading.lines(loaded.warnings, in: folder) == [
        "d.yaml:1:42: lane 'zigbe' has no effect, because the settings define no lanes;"
          + " define it there, such as lanes: {zigbe: {rate: 10/s}}"
      ]
    )
  }

  @Test(arguments: [
    ("devices: ../devices", true),
    ("devices: ../devices\nroutes: [{from: a, to: b}]", false),
  ])
  func `settings without any device or route are a warning`(
    settings: String,
    isWarned: Bool
  ) throws {
    let (outcome, folder) = try Loading.run(settings: settings, devices: ["d.yaml": "# later"])
    guard case .loaded(let loaded) = outcome else {
      Issue.record("The files were refused.")
      return
    }
    let warning =
      "devices: no devices: no file *.yaml in this folder describes one;"
      + " 'settle import --config /config/settle.yaml' writes them"
    #expect(Loading.lines(loaded.warnings, in: folder) == (isWarned ? [warning] : []))
  }

  @Test func `a time to live of 0 is allowed for gateway, device and property`() throws {
    let (outcome, _) = try Loading.run(
      settings: "devices: ../devices\nttl: 0",
      devices: [
        "d.yaml": """
        a: {properties: {p: {type: boolean, command: {topic: t}}}}
        b: {ttl: 0, properties: {p: {type: boolean, command: {topic: t}}}}
        c: {ttl: 1m, properties: {p: {type: boolean, ttl: 0, command: {topic: t}}}}
        """
      ]
    )
    guard case .loaded(let loaded) = outcome else {
      Issue.record("The files were refused.")
      return
    }
    #expect(loaded.gateway.ttl == .zero)
    #expect(loaded.registry.properties.map(\.property.ttl) == [.zero, .zero, .zero])
  }

  @Test func `a mistake that concerns a whole file has no line and column`() {
    let missing = ConfigurationProblem(file: "a.yaml", line: 0, column: 0, message: "is missing")
    #expect(missing.description == "a.yaml: is missing")
    #expect(
      JSONWriter.text(missing.json(severity: "error"))
        == #"{"file":"a.yaml","line":null,"column":null,"severity":"error","message":"is missing","#
        + #""suggestion":null}"#
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
