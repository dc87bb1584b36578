// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
@testable import Import
import Operations
import TestBroker
import Testing

/// `settle import` beside files of earlier imports, and in folders that are none.
@Suite(.blocking) struct ImportedFileScenarios {
  @Test func `no choice of sources imports a device twice`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt() + Fixture.messages("homeassistant.txt"))
    let choices = [[], ["--only", "homeassistant"], ["--base", "wrong"], []]
    for choice in choices {
      let run = try home.settled(["import"] + choice)
      #expect([0, 65].contains(run.code), Comment(rawValue: run.errors))
      #expect(!home.device(file: "imported-homeassistant.yaml").contains("wohnzimmer-decke"))
    }
    #expect(try home.settled(["check"]).code == 0)
    // Without the bridge, nothing tells whose device it is but its topics.
    for list in ["devices", "groups"] {
      home.client.publish("zigbee2mqtt/bridge/\(list)", "", retain: true)
    }
    let alone = try home.settled(["import"])
    #expect(
      alone.errors.contains("already in another device file, as 'wohnzimmer-decke'"),
      Comment(rawValue: alone.errors)
    )
    #expect(try home.settled(["check"]).code == 0)
  }

  @Test func `an import of what only a Zigbee2MQTT announces finds nothing for Home Assistant`()
    throws
  {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    let run = try home.settled(["import", "--only", "homeassistant"])
    #expect(run.code == 69)
    #expect(run.errors.contains("no retained message on homeassistant/+/+/config"))
  }

  @Test func `scenes and groups of imported devices do not prevent an import`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    #expect(try home.settled(["import"]).code == 0)
    try TextFile.write(
      """
      groups: {mine: {members: [wohnzimmer-decke, wohnzimmer-stehlampe]}}
      scenes: {evening: {wohnzimmer-decke: {power: on}}}
      """,
      to: "\(home.folder)/devices/mine.yaml"
    )
    let again = try home.settled(["import"])
    #expect(again.code == 0, Comment(rawValue: again.errors))
    #expect(again.output.hasSuffix("; nothing new\n"))
  }

  @Test(arguments: [true, false])
  func `a symbolic link is named as one wherever it leads`(isDangling: Bool) throws {
    let home = try ImportHome(Fixture.messages("homie.txt"))
    try #require(unsafe mkdir("\(home.folder)/devices", 0o700) == 0)
    let target = "\(home.folder)/elsewhere"
    if !isDangling { try TextFile.write("", to: target) }
    let link = "\(home.folder)/devices/imported-homie.yaml"
    try #require(unsafe symlink(target, link) == 0)
    let run = try home.settled(["import"])
    #expect(run.code == 1)
    #expect(
      run.errors.hasSuffix(
        "imported-homie.yaml: is a symbolic link, and nothing is written through one\n"
      ),
      Comment(rawValue: run.errors)
    )
    #expect(TextFile.read(target) == (isDangling ? nil : ""))
    guard isDangling else { return }
    let check = try home.settled(["check"])
    #expect(check.code == 78)
    #expect(check.output.contains("the file is a symbolic link to a file that does not exist"))
  }

  @Test(arguments: ["check", "import"])
  func `a folder of device files that is a file is one mistake`(command: String) throws {
    let home = try ImportHome([])
    let file = "\(home.folder)/file"
    try TextFile.write("", to: file)
    let run = try home.settled([command, "--devices", file])
    #expect(run.code == 78)
    let lines = (run.output + run.errors).split(separator: "\n").filter { $0.contains("a folder") }
    #expect(lines.count == 1, "\(lines)")
    #expect(lines.first?.contains("the folder of device files '\(file)' is not a folder") == true)
  }
}
