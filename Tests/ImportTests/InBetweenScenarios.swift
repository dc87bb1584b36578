// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import Import
import Operations
import TestBroker
import Testing

/// `settle import --in-between` with settings that have routes already.
@Suite(.blocking) struct InBetweenScenarios {
  private func settings(_ home: ImportHome) throws -> String {
    try #require(TextFile.read("\(home.folder)/settle.yaml"))
  }

  @Test func `a run without a topic finds the one that was chosen`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    let before = try settings(home)
    #expect(try home.settled(["import", "--in-between=z2m"]).code == 0)
    let chosen = try settings(home)
    let again = try home.settled(["import", "--in-between"])
    #expect(again.code == 0)
    #expect(try settings(home) == chosen)
    #expect(again.output.contains("settle.yaml: nothing new; all "))
    #expect(again.output.hasSuffix(" routes are there already\n"))
    #expect(again.errors.contains("  base_topic: z2m\n"))

    let undone = try home.settled(["import", "--in-between", "--undo"])
    #expect(undone.code == 0)
    #expect(undone.errors.contains("run this command again, with --in-between=z2m: it removes"))
    #expect(try settings(home) == before)
  }

  @Test func `a name that no route can have does not stop the others`() throws {
    func entry(_ name: String, endpoint: String) -> String {
      """
      {"ieee_address":"0x\(name.count)","friendly_name":"\(name)","type":"Router","definition":\
      {"model":"M","vendor":"V","exposes":[{"type":"switch","endpoint":"\(endpoint)","features":[\
      {"type":"binary","name":"state","property":"state_\(endpoint)","access":3,"value_on":"ON",\
      "value_off":"OFF"}]}]}}
      """
    }
    let list = [
      entry("lamp", endpoint: "~"), entry("a/b lamp", endpoint: "x/y"),
      entry("cellar/set", endpoint: "onoff"), entry("bridge/request/x", endpoint: "all"),
      entry("a+b", endpoint: "l1"),
    ]
    let home = try ImportHome([
      Announcement(
        topic: "zigbee2mqtt/bridge/devices",
        text: "[\(list.joined(separator: ","))]"
      )
    ])
    try home.makeFolder("devices")
    let run = try home.settled(["import", "--in-between"])
    #expect(run.code == 0, "\(run.errors)")
    #expect(run.errors.contains("skipped: cellar/set: reports on 'cellar/set' would count as"))
    #expect(run.errors.contains("skipped: bridge/request/x: "))
    #expect(run.errors.contains("skipped: a+b: "))
    #expect(try settings(home).contains(#""/state_~0": STOP"#))
    #expect(try settings(home).contains("a/b lamp/x/y/set"))
    #expect(try home.settled(["check"]).code == 0)
  }

  @Test func `a run with another topic is refused and names the one in use`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    #expect(try home.settled(["import", "--in-between=z2m"]).code == 0)
    let chosen = try settings(home)
    let other = try home.settled(["import", "--in-between=other"])
    #expect(other.code == 65)
    #expect(
      other.errors.contains(
        "settle.yaml has routes from 'zigbee2mqtt' to 'z2m' already; name that topic, as in"
          + " --in-between=z2m, or remove them first with --in-between=z2m --undo\n"
      )
    )
    let undo = try home.settled(["import", "--in-between=other", "--undo"])
    #expect(undo.code == 65)
    #expect(undo.output == "")
    #expect(
      undo.errors.contains(
        "settle.yaml has no routes to 'other', but to 'z2m'; --in-between=z2m --undo removes them"
      )
    )
    #expect(try settings(home) == chosen)
  }

  @Test(arguments: [[], ["=z2m"]])
  func `an undo removes reports that an earlier run has added from another topic`(
    topic: [String]
  ) throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    let path = "\(home.folder)/settle.yaml"
    let before = try settings(home)
    #expect(try home.settled(["import", "--in-between=z2m"]).code == 0)
    let chosen = try settings(home)
    try TextFile.write(before, to: path)
    #expect(try home.settled(["import", "--in-between"]).code == 0)
    // Routes from the same topic were not added again.
    let reports = try settings(home).dropFirst(before.count).split(separator: "\n").filter {
      $0.contains("{from: zigbee2mqtt-direct") || $0.contains("{from: \"zigbee2mqtt-direct")
    }
    #expect(reports.count > 10)
    try TextFile.write(chosen + reports.joined(separator: "\n") + "\n", to: path)
    let undone = try home.settled(["import", "--in-between\(topic.joined())", "--undo"])
    #expect(undone.code == 0)
    #expect(try settings(home) == before)
  }

  @Test func `routes of two Zigbee2MQTT are told apart by --base`() throws {
    let second = try Announcement(
      topic: "other/bridge/devices",
      text: Fixture.text("bridge-devices.json")
    )
    let home = try ImportHome(Fixture.zigbee2mqtt() + [second])
    let first = ["import", "--in-between=a", "--base", "zigbee2mqtt"]
    #expect(try home.settled(first).code == 0)
    let one = try settings(home)
    let taken = try home.settled(["import", "--in-between=a", "--base", "other"])
    #expect(taken.code == 65)
    #expect(taken.errors.contains("has routes from 'zigbee2mqtt' to 'a' already; name another"))
    #expect(try home.settled(["import", "--in-between=b", "--base", "other"]).code == 0)
    let several = try home.settled(["import", "--in-between", "--undo"])
    #expect(several.code == 64)
    #expect(several.errors.contains("from 'zigbee2mqtt' to 'a', and from 'other' to 'b'; name one"))
    #expect(try home.settled(["import", "--in-between", "--base", "other", "--undo"]).code == 0)
    #expect(try settings(home) == one)
  }

  @Test(arguments: [
    #"{"mqtt":{"url":"mqtt://127.0.0.1:PORT"},"devices":"devices"}"#,
    """
    {
      "mqtt": {
        "url": "mqtt://127.0.0.1:PORT"
      }
    }

    """,
    "{mqtt: {url: 'mqtt://127.0.0.1:PORT'},}  # braces",
    #"{"mqtt":{"url":"mqtt://127.0.0.1:PORT"},"routes":[{"from":"a/b","to":"c/d"}],"ttl":"5s"}"#,
    "mqtt: {url: 'mqtt://127.0.0.1:PORT'}\nroutes: [{from: a/b, to: c/d}]\nttl: 5s\n",
    "mqtt: {url: 'mqtt://127.0.0.1:PORT'}\nroutes: [{from: a/b, to: c/d},\n  {from: e, to: f}]\n",
  ])
  func `settings in braces and brackets get the routes, and lose them again`(
    text: String
  ) throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    try home.makeFolder("devices")
    let before = text.replacing("PORT", with: "\(home.broker.port)")
    try TextFile.write(before, to: "\(home.folder)/settle.yaml")
    #expect(try home.settled(["check"]).code == 0)

    let added = try home.settled(["import", "--in-between"])

    #expect(added.code == 0, "\(added.errors)")
    #expect(try settings(home).contains(#"{"from":"zigbee2mqtt/+/set","to":"zigbee2mqtt-direct/"#))
    #expect(try home.settled(["check"]).output.contains(" routes"))
    let again = try home.settled(["import", "--in-between"])
    #expect(again.output.contains("settle.yaml: nothing new; all "), "\(again.errors)")
    #expect(try home.settled(["import", "--in-between", "--undo"]).code == 0)
    #expect(try settings(home) == before)
  }

  @Test func `routes in an empty list in brackets are added to it`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    try TextFile.write(
      "{\"mqtt\":{\"url\":\"mqtt://127.0.0.1:\(home.broker.port)\"},\"routes\":[]}",
      to: "\(home.folder)/settle.yaml"
    )
    #expect(try home.settled(["import", "--in-between"]).code == 0)
    #expect(try home.settled(["check"]).output.contains(" routes"))
    #expect(try home.settled(["import", "--in-between", "--undo"]).code == 0)
    #expect(try !settings(home).contains("zigbee2mqtt"))
  }

  @Test func `routes that are written elsewhere are named with their line`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    try TextFile.write(
      """
      mqtt: {url: "mqtt://127.0.0.1:\(home.broker.port)", reply_topics: &none []}
      routes: *none

      """,
      to: "\(home.folder)/settle.yaml"
    )
    #expect(try home.settled(["check"]).code == 0)
    let run = try home.settled(["import", "--in-between"])
    #expect(run.code == 78)
    #expect(run.errors.contains("settle.yaml:2:9: routes: the list must be written here"))
    #expect(run.errors.hasSuffix("settle import: nothing was written\n"), "\(run.errors)")
  }

  @Test func `a dry run names the file, and says what it would do`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    let dry = try home.settled(["import", "--in-between", "--dry-run"])
    #expect(dry.errors.contains("settle.yaml: "))
    #expect(dry.errors.contains(" routes to add; nothing was written\n"))
    #expect(try home.settled(["import", "--in-between"]).code == 0)
    let again = try home.settled(["import", "--in-between", "--dry-run"])
    #expect(again.output == "")
    #expect(again.errors.contains("settle.yaml: nothing new; all "))
    let undo = try home.settled(["import", "--in-between", "--undo", "--dry-run"])
    #expect(undo.errors.contains(" routes to remove; nothing was written\n"))
  }

  @Test(arguments: [["--only", "homie"], ["--ask"], ["--diagnostic"]])
  func `an option that only the import of devices has is refused`(option: [String]) throws {
    let home = try ImportHome([])
    let run = try home.settled(["import", "--in-between"] + option)
    #expect(run.code == 64)
    #expect(
      run.errors.contains(
        "\(option[0]): does not go with --in-between, which writes no device files; with it go"
          + " --base, --prefix, --undo, --dry-run, --timeout, --config and --json"
      )
    )
  }
}
