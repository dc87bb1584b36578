// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import JSON
package import LastOut
package import Values

/// What a lamp shows in Home Assistant's JSON schema.
extension Light {
  /// Where one of its properties stands.
  package struct Reading: Sendable {
    /// The target; `nil` where nothing is known.
    package var value: Value?
    /// Whether the device has yet to show the target.
    package var isPending: Bool
    /// When the phase or the reported value last changed.
    package var since: Moment?

    package init(_ value: Value?, isPending: Bool = false, since: Moment? = nil) {
      self.value = value
      self.isPending = isPending
      self.since = since
    }
  }

  /// The message that shows the lamp; `nil` where nothing is known of it.
  package func state(
    _ properties: [Property],
    _ reading: (Int) -> Reading
  ) -> JSONValue? {
    let readings = places.map { reading($0) }
    guard readings.contains(where: { $0.value != nil }) else { return nil }
    let isOn = isOn(properties, reading)
    var members: [JSONValue.Member] = [
      .init("state", isOn.map { $0 ? "ON" : "OFF" } ?? .null)
    ]
    if let brightness, let level = number(brightness, reading), level > 0 {
      members.append(.init("brightness", Self.shown(level, properties[brightness])))
    }
    members += colors(properties, reading)
    if let effect, case .text(let word) = reading(effect).value {
      members.append(.init("effect", .string(word)))
    }
    return .object(members)
  }

  private func number(_ place: Int, _ reading: (Int) -> Reading) -> Double? {
    if case .number(let number) = reading(place).value { number } else { nil }
  }

  /// Whether the lamp is on; what a device reports of its brightness counts where it does not
  /// report its power.
  private func isOn(_ properties: [Property], _ reading: (Int) -> Reading) -> Bool? {
    let level = brightness.flatMap { number($0, reading) }
    guard let power else { return level.map { $0 > 0 } }
    let switched = reading(power)
    let known: Bool? = if case .boolean(let flag) = switched.value { flag } else { nil }
    // A group has no states of its own, but confirms what its members report.
    let isReported = !properties[power].states.isEmpty || properties[power].confirm != nil
    guard !isReported, let brightness, let level else { return known }
    guard let known, let since = switched.since, since > reading(brightness).since ?? .zero else {
      return level > 0
    }
    return known
  }

  /// A brightness in Home Assistant's levels.
  private static func shown(_ level: Double, _ property: Property) -> JSONValue {
    let scale = property.brightnessScale
    let high = property.kind.numberRule?.range?.upperBound ?? 255
    guard scale != high else { return JSONValue(shortest: level) }
    return JSONValue(shortest: max((level / high * scale).rounded(), 1))
  }

  // MARK: - Color

  /// The color mode, and the white tone or the color that it is about.
  private func colors(
    _ properties: [Property],
    _ reading: (Int) -> Reading
  ) -> [JSONValue.Member] {
    let white = temperature.flatMap { number($0, reading) }
    let tint: Color? = color.flatMap {
      if case .color(let color) = reading($0).value { color } else { nil }
    }
    if let temperature, let white, tint == nil || showsWhite(reading) {
      let isKelvin = properties[temperature].kind.numberRule?.isKelvin == true
      let mireds = isKelvin && white > 0 ? 1_000_000 / white : white
      return [
        .init("color_mode", "color_temp"),
        .init("color_temp", .integer(Int64(mireds.rounded()))),
      ]
    }
    if let tint, let mode = colorMode(properties) {
      return [
        .init("color_mode", .string(mode.rawValue)), .init("color", tint.wire(mode.encoding)),
      ]
    }
    guard temperature == nil, color == nil else { return [] }
    return [.init("color_mode", "brightness")]
  }

  /// Whether a lamp with both a white tone and a color shows the white tone.
  ///
  /// What was requested and is not shown yet counts first, then what the device says of its mode,
  /// then what changed last. A report that changes both is about the white tone: bridges also say
  /// which color a white tone is.
  private func showsWhite(_ reading: (Int) -> Reading) -> Bool {
    guard let temperature, let color else { return temperature != nil }
    let (white, tint) = (reading(temperature), reading(color))
    if white.isPending != tint.isPending { return white.isPending }
    if !white.isPending, let mode, case .text(let word) = reading(mode).value {
      // Zigbee2MQTT before 1.19 reports the number of the Zigbee specification.
      return ["color_temp", "white", "2"].contains(word)
    }
    return (white.since ?? .zero) >= (tint.since ?? .zero)
  }
}

extension Light.ColorMode {
  fileprivate var encoding: ColorEncoding {
    switch self {
    case .xy: .xy
    case .hs: .hs
    case .rgb: .rgb
    }
  }
}
