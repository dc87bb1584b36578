// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Testing
import Values

struct LookupTests {
  private let registry: Registry = {
    var power = Property.of(.boolean)
    power.id = "power"
    power.aliases = ["state"]
    var level = Property.number()
    level.id = "brightness"
    return Registry([
      Device(id: "desk-lamp", name: "Desk", properties: [power, level]),
      Device(id: "hall", name: "Hall", properties: [power]),
    ])
  }()

  @Test func `properties are numbered in order`() throws {
    #expect(
      registry.properties.map(\.key) == [
        "desk-lamp/power", "desk-lamp/brightness", "hall/power",
      ]
    )
    #expect(try registry.index(of: "hall/power") == KeyIndex(2))
    #expect(try registry.index(of: "hall/state") == KeyIndex(2))
    #expect(Array(registry.indices(ofDevice: 0)) == [0, 1])
    #expect(Array(registry.indices(ofDevice: 1)) == [2])
    let bytes = Array("desk-lamp/state".utf8)
    #expect(registry.index(ofKey: bytes.span) == KeyIndex(0))
    #expect(try registry.deviceIndex(of: "hall") == 1)
  }

  @Test(arguments: [
    ("desk-lmap/power", "no device 'desk-lmap'; did you mean 'desk-lamp'?"),
    (
      "desk-lamp/brightnes",
      "device 'desk-lamp' has no property 'brightnes'; did you mean 'brightness'?"
        + " It has power, brightness"
    ),
    ("desk-lamp/zzz", "device 'desk-lamp' has no property 'zzz'; it has power, brightness"),
    (
      "desk-lamp",
      "'desk-lamp' is no key; a key is DEVICE/PROPERTY; did you mean 'desk-lamp/*'?"
    ),
    ("desk-lmp", "'desk-lmp' is no key; a key is DEVICE/PROPERTY; did you mean 'desk-lamp/*'?"),
    (
      "brightness",
      "'brightness' is no key; a key is DEVICE/PROPERTY; did you mean 'desk-lamp/brightness'?"
    ),
    ("state", "'state' is no key; a key is DEVICE/PROPERTY; did you mean 'desk-lamp/power'?"),
    ("a/b/c", "'a/b/c' is no key; a key is DEVICE/PROPERTY"),
    ("", "'' is no key; a key is DEVICE/PROPERTY"),
    ("desk-lamp/+", "device 'desk-lamp' has no property '+'; it has power, brightness"),
  ])
  func `an unknown key is reported with a suggestion`(key: String, message: String) {
    do throws(ValidationError) {
      _ = try registry.index(of: key)
      Issue.record("The key was found.")
    } catch {
      #expect(registry.suggesting(error).description == message)
    }
  }

  @Test(arguments: [
    ("desk-lmp", "no device or key 'desk-lmp'; did you mean 'desk-lamp'?"),
    ("lamp", "no device or key 'lamp'; did you mean 'desk-lamp'?"),
    ("lmp", "no device or key 'lmp'; did you mean 'desk-lamp'?"),
    ("brightness", "no device or key 'brightness'; did you mean 'desk-lamp/brightness'?"),
    ("nope", "no device or key 'nope'"),
    ("a/b/c", "no device or key 'a/b/c'"),
    ("hal/power", "no device 'hal'; did you mean 'hall'?"),
  ])
  func `an unknown name is reported with a suggestion`(name: String, message: String) {
    do throws(ValidationError) {
      _ = try registry.index(named: name)
      Issue.record("The name was found.")
    } catch {
      #expect(registry.suggesting(error).description == message)
    }
  }

  @Test func `a part of the names of several devices suggests none of them`() {
    let registry = Registry([
      Device(id: "desk-lamp", name: "Desk", properties: []),
      Device(id: "hall_lamp", name: "Hall", properties: []),
    ])
    for word in ["lamp", "lmp"] {
      let error = ValidationError.unknownName(word, suggestion: nil)
      #expect(registry.suggesting(error) == error)
    }
  }

  @Test(
    arguments: [
      ("*", [0, 1, 2]), ("desk-lamp/*", [0, 1]), ("*/power", [0, 2]), ("hall/power", [2]),
      ("hall/state", [2]), ("????/power", [2]), ("x*", []), ("nothing", []), ("*p*w*r", [0, 2]),
    ] as [(String, [Int32])]
  )
  func `patterns find keys in order`(pattern: String, found: [Int32]) {
    #expect(registry.indices(matching: pattern).map(\.rawValue) == found)
  }

  @Test func `a pattern full of stars terminates`() {
    let pattern = Pattern(String(repeating: "a*", count: 50) + "b")
    #expect(!pattern.matches(String(repeating: "a", count: 2_000)))
  }

  @Test func `a name table finds exactly its names`() {
    let devices = (0..<2_000).map { number in
      Device(id: "d\(number)", name: "", properties: [Property.of(.boolean)])
    }
    let registry = Registry(devices)
    for number in 0..<2_000 {
      let key = Array("d\(number)/p".utf8)
      #expect(registry.index(ofKey: key.span) == KeyIndex(Int32(number)))
    }
    let absent = Array("d2000/p".utf8)
    #expect(registry.index(ofKey: absent.span) == nil)
  }

  @Test(arguments: [
    ("", "{\"a\":[10,{\"/\":1,\"~\":2}],\"\":3}"), ("/a/0", "10"), ("/a/1/~1", "1"),
    ("/a/1/~0", "2"), ("/", "3"), ("/a/2", nil), ("/a/00", nil), ("/a/-", nil), ("/b", nil),
    ("/a/0/x", nil),
  ])
  func `a pointer finds its value`(pointer: String, found: String?) throws {
    let document = JSONValue.object([
      "a": [10, .object(["/": 1, "~": 2])], "": 3,
    ])
    let parsed = try #require(JSONPointer(pointer))
    #expect(parsed.value(in: document).map { JSONWriter.text($0) } == found)
    #expect(parsed.text == pointer)
  }

  @Test(arguments: ["a", "a/b", "/~", "/~2", "~0"])
  func `invalid pointers are rejected`(text: String) {
    #expect(JSONPointer(text) == nil)
  }

  @Test(arguments: [
    ("64KiB", 65_536), ("1MiB", 1_048_576), ("100", 100), ("64KB", nil), ("KiB", nil), ("-1", nil),
    ("99999999999GiB", nil),
  ])
  func `sizes have binary units`(text: String, bytes: Int?) {
    #expect(SizeText.parse(text) == bytes)
  }
}
