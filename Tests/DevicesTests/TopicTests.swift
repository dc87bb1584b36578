// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Testing

@Suite struct TopicTests {
  @Test(arguments: [
    ("a/b/c", "a/b/c", true), ("a/+/c", "a/b/c", true), ("a/+", "a/b/c", false),
    ("a/#", "a/b/c", true), ("a/#", "a", true), ("a/#", "ab", false), ("#", "a/b", true),
    ("#", "$SYS/x", false), ("+/x", "$SYS/x", false), ("$SYS/#", "$SYS/x", true),
    ("+", "", true), ("+/+", "/", true), ("/+", "/a", true), ("+", "/a", false),
    ("a/+/b", "a//b", true), ("a", "A", false), ("a/b", "a", false), ("a", "a/b", false),
    ("a/+", "a/", true), ("a/+", "a", false), ("é/+", "é/x", true),
    ("sport/tennis/player1/#", "sport/tennis/player1/ranking", true),
  ])
  func `a filter matches by the rules of MQTT`(filter: String, name: String, matches: Bool) {
    #expect(Topic.matches(filter: filter, name: name) == matches)
    #expect((Topic.captures(filter: filter, name: name) != nil) == matches)
  }

  @Test(
    arguments: [
      ("a/+/c", "a/b/c", ["b"]), ("+/+", "x/y", ["x", "y"]), ("a/#", "a/b/c", ["b/c"]),
      ("a/#", "a", [""]), ("a/+/#", "a/b/c/d", ["b", "c/d"]), ("a", "a", []), ("+", "", [""]),
      ("#", "a/b", ["a/b"]), ("a/#", "a/", [""]),
    ] as [(String, String, [String])]
  )
  func `wildcards capture the levels that they match`(
    filter: String,
    name: String,
    captures: [String]
  ) {
    #expect(Topic.captures(filter: filter, name: name) == captures)
  }

  @Test(
    arguments: [
      ("fast/+/out", ["lamp"], "fast/lamp/out"), ("x/#", ["b/c"], "x/b/c"), ("x/#", [""], "x"),
      ("#", ["a/b"], "a/b"), ("+/+", ["a"], nil), ("plain", [], "plain"), ("+", ["a", "b"], "a"),
      ("a/+", [""], "a/"),
    ] as [(String, [String], String?)]
  )
  func `a template is filled in order`(template: String, captures: [String], topic: String?) {
    #expect(Topic.fill(template: template, with: captures) == topic)
  }

  @Test(arguments: [
    ("a/b", "a/b", true), ("a/b", "a/c", false), ("a/+", "+/b", true), ("a/#", "a", true),
    ("a/#", "b/#", false), ("#", "x/y/z", true), ("#", "$SYS/x", false), ("+/x", "$SYS/x", false),
    ("$SYS/#", "$SYS/+", true), ("a/+", "a", false), ("a/+/c", "a/b/#", true),
    ("a/#", "a/b/+", true), ("+", "a/b", false), ("+/+", "a/#", true), ("a/b/#", "a/+", true),
    ("#", "$share/x", false),
  ])
  func `filters overlap if some name matches both`(left: String, right: String, overlap: Bool) {
    #expect(Topic.overlaps(left, right) == overlap)
    #expect(Topic.overlaps(right, left) == overlap)
  }

  @Test(
    arguments: [
      ("a/b", nil), ("/", nil), ("grün/☀️", nil), ("", "the topic is empty"),
      ("a/+/b", "the topic contains the wildcard +"), ("a#", "the topic contains the wildcard #"),
      ("$SYS/a", "the topic begins with $, which is the broker's own"),
      ("a\0", "the topic contains the character U+0000"),
      ("a\u{1B}", "the topic contains the character U+001B"),
      ("a\u{FFFF}", "the topic contains the character U+FFFF"),
      (String(repeating: "/", count: 199), nil),
      (
        String(repeating: "/", count: 200), "the topic has 201 levels; at most 200 are allowed"
      ),
      (String(repeating: "a", count: 65_535), nil),
      (
        String(repeating: "é", count: 32_768),
        "the topic has 65536 bytes; at most 65535 are allowed"
      ),
    ] as [(String, String?)]
  )
  func `an invalid topic name is refused with the reason`(name: String, problem: String?) {
    #expect(Topic.problem(inName: name) == problem)
  }

  private static func shared(_ first: String) -> String {
    "a shared subscription (\(first)/…) receives only some of the messages, and other clients the "
      + "rest; name the topic filter alone"
  }

  @Test(
    arguments: [
      ("a/+/b/#", nil), ("#", nil), ("+", nil), ("$SYS/#", nil), ("", "the topic filter is empty"),
      ("a/#/b", "# must stand alone, as the last level of a topic filter"),
      ("a/b#", "# must stand alone, as the last level of a topic filter"),
      ("a+/b", "+ must stand alone between two slashes of a topic filter"),
      ("a\n", "the topic filter contains the character U+000A"),
      ("$share/house/lamp/#", shared("$share")), ("$share/a", shared("$share")),
      ("$queue/lamp/+", shared("$queue")), ("$shared/a", nil), ("a/$share/b", nil),
    ] as [(String, String?)]
  )
  func `an invalid filter is refused with the reason`(filter: String, problem: String?) {
    #expect(Topic.problem(inFilter: filter) == problem)
  }
}
