// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import Configuration
import Devices
import FoundationEssentials
import Testing

/// Files that are broken, hostile or large.
struct RobustnessTests {
  @Test func `no mistake writes a control character to the terminal`() {
    let problem = ConfigurationProblem(
      file: "a\u{1B}[2J.yaml",
      line: 1,
      column: 2,
      message: "'\u{1B}]0;title\u{7}\u{9B}\u{202E}\u{200F}\n' is not a device identifier",
      suggestion: "\u{1B}x"
    )
    #expect(
      problem.description
        == #"a\u{1b}[2J.yaml:1:2: '\u{1b}]0;title\u{7}\u{9b}\u{202e}\u{200f}\n' is not a device"#
        + #" identifier; did you mean '\u{1b}x'?"#
    )
  }

  private func problems(_ bytes: [UInt8]) throws -> [String] {
    let folder = try TemporaryFolder()
    try folder.write(bytes, to: "devices/d.yaml")
    try folder.write(Array("devices: devices".utf8), to: "settle.yaml")
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = folder.path + "/settle.yaml"
    guard case .refused(let problems) = Loading.load(overrides) else { return [] }
    return Loading.lines(problems, in: folder)
  }

  @Test func `a file of ten megabytes is rejected`() throws {
    let bytes = [UInt8](repeating: UInt8(ascii: "a"), count: 10_000_000)
    #expect(
      try problems(bytes) == [
        "d.yaml: the file has 10000000 bytes; at most 8388608 are read"
      ]
    )
  }

  @Test(
    arguments: [
      (
        [0x61, 0x3A, 0x20, 0xFF],
        "d.yaml:1:4: byte 0xFF is not UTF-8; the file must be text in UTF-8"
      ),
      ([0x0A, 0x61, 0x00], "d.yaml:2:2: control character 0x00 is not allowed in a text file"),
      ([0xED, 0xA0, 0x80], "d.yaml:1:1: byte 0xED is not UTF-8; the file must be text in UTF-8"),
      ([0xC3], "d.yaml:1:1: byte 0xC3 is not UTF-8; the file must be text in UTF-8"),
    ] as [([UInt8], String)]
  )
  func `a file that is not text is rejected at its first invalid byte`(
    bytes: [UInt8],
    line: String
  ) throws {
    #expect(try problems(bytes) == [line])
  }

  @Test(arguments: ["", "# nothing\n", "---\n", "null", "~"])
  func `a file without devices is valid`(text: String) throws {
    #expect(try problems(Array(text.utf8)) == [])
  }

  @Test(arguments: ["[", "{a: "])
  func `deep nesting is rejected`(opening: String) throws {
    let text = "a: " + String(repeating: opening, count: 50_000)
    let lines = try problems(Array(text.utf8))
    #expect(lines.contains { $0.contains("nested deeper than 64 levels") || $0.contains("YAML") })
  }

  @Test func `an alias bomb stays small`() throws {
    var text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in 1..<30 {
      let aliases = [String](repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
      text += "a\(level): &a\(level) [\(aliases)]\n"
    }
    text += "d: {properties: {p: {type: text, command: {topic: t, payload: *a29}}}}\n"
    let lines = try problems(Array(text.utf8))
    #expect(lines.contains { $0.contains("the payload holds more than 10000 values") })
  }

  @Test func `a bomb of merged keys stays small`() throws {
    var text = "a0: &a0 {\((0..<1_000).map { "k\($0): x" }.joined(separator: ", "))}\n"
    for level in 1..<500 { text += "a\(level): &a\(level) {<<: [*a0, *a0, *a0], z: 1}\n" }
    let lines = try problems(Array(text.utf8))
    #expect(lines.contains { $0.contains("'<<' merges too many entries") })
  }

  @Test func `the number of reported mistakes is limited`() throws {
    let text = (0..<2_000).map { "d\($0): 5\n" }.joined()
    let lines = try problems(Array(text.utf8))
    #expect(lines.count == 1_001)
    #expect(lines.last?.hasSuffix("more than 1000 mistakes; the rest is not shown") == true)
  }

  @Test func `an alias to its own container is rejected`() throws {
    let lines = try problems(Array("d: &x {name: *x}".utf8))
    #expect(lines.contains("d.yaml:1:15: alias '*x' refers to a value that contains it"))
  }

  @Test func `aliases and merged keys act as copies`() throws {
    let text = """
      a: {properties: {p: &p {type: text, command: {topic: t}}}}
      b: {properties: {p: *p, q: {<<: *p, type: boolean}}}
      """
    #expect(try problems(Array(text.utf8)) == [])
  }

  @Test func `no mutation of the shipped files crashes the loader`() throws {
    var random = Xorshift(state: 0x5E77_1E00)
    var refused = 0
    for name in ["desk-lamp.yaml", "boiler.yaml", "hall.yaml", "tasmota.yaml"] {
      let file = URL(filePath: Loading.root + "/docs/examples/devices/" + name)
      let original = [UInt8](try Data(contentsOf: file))
      for _ in 0..<60 {
        let problems = Problems()
        let mutated = random.mutation(of: original)
        if let root = YAMLReader.read(mutated, file: name, problems: problems) {
          var decoder = DeviceDecoder(
            context: DeviceContext(),
            profiles: ProfileStore(problems: problems),
            problems: problems
          )
          decoder.read(root)
        }
        for problem in problems.errors {
          #expect(problem.line >= 1 && problem.column >= 1 && !problem.message.isEmpty)
        }
        if !problems.errors.isEmpty { refused += 1 }
      }
    }
    #expect(refused > 50)
  }

  @Test func `no mutation of the shipped settings crashes the loader`() throws {
    var random = Xorshift(state: 0xC0FF_EE00)
    let file = URL(
      filePath: Loading.root + "/Tests/ConfigurationTests/Fixtures/documented-settings.yaml"
    )
    let original = [UInt8](try Data(contentsOf: file))
    var refused = 0
    for _ in 0..<200 {
      let problems = Problems()
      let mutated = random.mutation(of: original)
      if let root = YAMLReader.read(mutated, file: "settle.yaml", problems: problems) {
        let (settings, positions) = SettingsReader(folder: nil, problems: problems).settings(root)
        RouteChecks(settings: settings, problems: problems).check(positions.routes)
      }
      if !problems.errors.isEmpty { refused += 1 }
    }
    #expect(refused > 50)
  }

  @Test func `a thousand devices are read`() throws {
    var text = ""
    for number in 0..<1_000 {
      text += "lamp-\(number): {profile: zigbee2mqtt/light, topic: zigbee2mqtt/lamp_\(number)}\n"
    }
    let (outcome, _) = try Loading.run(devices: ["many.yaml": text])
    guard case .loaded(let loaded) = outcome else {
      Issue.record("The devices were refused.")
      return
    }
    #expect(loaded.registry.properties.count == 5_000)
  }
}

/// A small deterministic random number generator.
struct Xorshift {
  var state: UInt64

  mutating func next(below bound: Int) -> Int {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return Int(state % UInt64(bound))
  }

  /// Changes, removes, repeats or replaces a few bytes, sometimes by YAML syntax.
  mutating func mutation(of bytes: [UInt8]) -> [UInt8] {
    var result = bytes
    let marks = Array("{}[]:,&*#|>-!%@'\"\n\t $~0?<".utf8)
    for _ in 0...next(below: 4) where !result.isEmpty {
      let place = next(below: result.count)
      switch next(below: 5) {
      case 0: result[place] = marks[next(below: marks.count)]
      case 1: result.remove(at: place)
      case 2: result.insert(marks[next(below: marks.count)], at: place)
      case 3: result[place] = UInt8(next(below: 256))
      default:
        let end = min(result.count, place + next(below: 40))
        result.insert(contentsOf: result[place..<end], at: next(below: result.count))
      }
    }
    return result
  }
}
