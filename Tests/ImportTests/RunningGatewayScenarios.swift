// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
@testable import Import
import Operations
import TestBroker
import Testing

/// Commands without `--config` beside a gateway that runs: they use its files.
@Suite(.blocking) struct RunningGatewayScenarios {
  @Test func `import and check use the files of the running gateway, and say so`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    try home.makeFolder("devices")
    try home.startGateway()
    let used = "using the files of the running gateway: settle.yaml and devices\n"

    let imported = try home.settledBeside(["import"])

    #expect(imported.code == 0, "\(imported.errors)")
    #expect(imported.errors.hasPrefix("settle import: \(used)"), "\(imported.errors)")
    #expect(imported.output.hasPrefix("devices/imported-zigbee2mqtt.yaml: "))
    #expect(home.names(in: "devices").contains("imported-zigbee2mqtt.yaml"))
    let checked = try home.settledBeside(["check"])
    #expect(checked.errors == "settle check: \(used)")
    #expect(checked.output.hasPrefix("OK: 73 devices, 2 groups, "), "\(checked.output)")
  }

  @Test func `elsewhere their paths are absolute, and an option still chooses the folder`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    try home.makeFolder("devices")
    try home.startGateway()
    try home.makeFolder("elsewhere")

    let run = try home.settledBeside(["import", "--devices", "devices"], in: "elsewhere")

    #expect(run.code == 0, "\(run.errors)")
    #expect(run.errors.contains(": \(home.folder)/settle.yaml and devices\n"), "\(run.errors)")
    #expect(home.names(in: "devices").isEmpty)
    #expect(home.names(in: "elsewhere/devices").contains("imported-zigbee2mqtt.yaml"))
  }

  @Test func `a folder that the gateway was told by an option is used too`() throws {
    let home = try ImportHome([])
    try home.makeFolder("other")
    try TextFile.write(
      "lamp: {profile: zigbee2mqtt/light, topic: zigbee2mqtt/lamp}\n",
      to: "\(home.folder)/other/lamp.yaml"
    )
    try home.startGateway(["--devices", "\(home.folder)/other"])

    let run = try home.settledBeside(["check"])

    #expect(run.output.hasPrefix("OK: 1 device, "), "\(run.output)")
    #expect(run.errors.hasSuffix(": settle.yaml and other\n"), "\(run.errors)")
  }

  @Test func `--config and SETTLE_CONFIG count, whatever runs`() throws {
    let home = try ImportHome([])
    try home.makeFolder("devices")
    try home.startGateway()
    try TextFile.write("ttl: 5\n", to: "\(home.folder)/other.yaml")

    let option = try home.settledBeside(["check", "--config", "other.yaml"])
    let variable = try home.settledBeside(["check"], variables: ["SETTLE_CONFIG=other.yaml"])

    for run in [option, variable] {
      #expect(run.output.hasPrefix("other.yaml:1:6: "), "\(run.output)")
      #expect(!run.errors.contains("running gateway"))
    }
  }

  @Test func `init leaves the settings of the running gateway alone`() throws {
    let home = try ImportHome([])
    try home.makeFolder("devices")
    try home.startGateway()

    let run = try home.settledBeside(["init", "--yes"])

    #expect(run.code == 65)
    #expect(
      run.errors == """
        settle init: a gateway runs already, with settle.yaml; settle import --config settle.yaml \
        adds devices to it, or settle init --config DIR sets up another folder

        """
    )
    #expect(!home.names().contains("config"))
  }

  @Test func `without an answer the usual files are used, and it is said`() throws {
    let home = try ImportHome([])
    try home.makeFolder("devices")
    try home.startGateway()
    home.pauseGateway()

    let run = try home.settledBeside(["check"])

    #expect(
      run.errors.contains("the running gateway does not say which files it reads: no answer"),
      "\(run.errors)"
    )
    #expect(!run.output.contains("settle.yaml"))
  }

  @Test func `without an answer the import writes nothing, and asks for the settings`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    try home.makeFolder("devices")
    try home.startGateway()
    try home.makeFolder("elsewhere")
    home.pauseGateway()

    let run = try home.settledBeside(
      ["import"],
      in: "elsewhere",
      variables: ["SETTLE_MQTT_URL=mqtt://127.0.0.1:\(home.broker.port)"]
    )

    #expect(run.code == 69)
    #expect(
      run.errors == """
        settle import: the running gateway does not say which files it reads: no answer within 2s; \
        nothing was written: name its settings with --config FILE

        """
    )
    #expect(home.names(in: "elsewhere").isEmpty)
    #expect(home.names(in: "devices").isEmpty)
  }

  @Test(.enabled(if: geteuid() != 0, "root is never denied"))
  func `a gateway that denies access is not passed over in silence`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    try home.makeFolder("devices")
    try home.startGateway()
    try #require(unsafe chmod("\(home.folder)/s.sock", 0) == 0)
    let denied = "the running gateway does not say which files it reads: permission denied at "

    let imported = try home.settledBeside(["import"])
    let checked = try home.settledBeside(["check"])

    #expect(imported.code == 69)
    #expect(imported.errors.hasPrefix("settle import: \(denied)"), "\(imported.errors)")
    #expect(imported.errors.hasSuffix("name its settings with --config FILE\n"))
    #expect(home.names(in: "devices").isEmpty)
    #expect(checked.errors.contains("settle check: \(denied)"), "\(checked.errors)")
  }

  @Test func `an import without a gateway and settings says that it found none`() throws {
    let home = try ImportHome([])
    let variables = ["SETTLE_MQTT_URL=mqtt://127.0.0.1:\(home.broker.port)"]
    home.broker.stop()

    let run = try home.settledBeside(["import"], variables: variables)

    #expect(run.code == 69)
    #expect(run.errors.contains("no connection to mqtt://127.0.0.1:"), "\(run.errors)")
    #expect(
      run.errors.hasSuffix(
        "No settings file was found (looked at /etc/settle/settle.yaml); name yours with"
          + " --config FILE or SETTLE_CONFIG\n"
      ),
      "\(run.errors)"
    )
  }
}
