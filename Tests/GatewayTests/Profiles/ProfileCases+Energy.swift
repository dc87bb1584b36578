// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import Simulation

/// Profiles of programs with one topic for each value: cameras, charging points, inverters.
extension ProfileCases {
  static var frigate: [ProfileCase] {
    [
      .flag(
        "frigate/camera",
        "frigate/front_door",
        id: "detect",
        to: "/detect/set",
        payload: word,
        device: { ValueTopics.camera($0) }
      )
    ]
  }

  static var evcc: [ProfileCase] {
    [
      .number(
        "evcc/loadpoint",
        "evcc/loadpoints/1",
        id: "limit_soc",
        initial: "80",
        values: levels,
        to: "/limitSoc/set",
        device: { ValueTopics.loadpoint($0) }
      )
    ]
  }

  static var opendtu: [ProfileCase] {
    [
      .number(
        "opendtu/inverter",
        "solar/116180400144",
        id: "limit",
        initial: "100",
        values: levels,
        to: "/cmd/limit_nonpersistent_relative",
        device: { ValueTopics.inverter($0) }
      )
    ]
  }

  static var victron: [ProfileCase] {
    let setPoint = "settings/0/Settings/CGwacs/AcPowerSetPoint"
    let relay = "system/0/Relay/0/State"
    return [
      .number(
        "victron/number",
        "c0619ab1",
        parameters: "{path: \(setPoint)}",
        fields: "range: [-5000, 5000], step: 1",
        id: "value",
        initial: "50",
        values: levels,
        to: "=W/c0619ab1/\(setPoint)",
        payload: { #"{"value":\#($0)}"# },
        device: { ValueTopics.victron($0, path: setPoint, initial: 50) }
      )
      .withoutAvailability,
      .flag(
        "victron/switch",
        "c0619ab2",
        parameters: "{path: \(relay)}",
        to: "=W/c0619ab2/\(relay)",
        payload: { #"{"value":\#($0 ? 1 : 0)}"# },
        device: { ValueTopics.victron($0, path: relay, initial: 0) }
      )
      .withoutAvailability,
    ]
  }
}
