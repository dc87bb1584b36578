// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Values

extension Property {
  /// A property of a kind, with default settings.
  static func of(_ kind: ValueKind, wire: WireRule = WireRule()) -> Property {
    var property = Property(
      id: "p",
      kind: kind,
      policy: Policy(delay: .zero),
      command: CommandEndpoint(topic: "t", payload: PayloadTemplate("$value"))
    )
    property.wire = wire
    return property
  }

  /// A number in a range with a step.
  static func number(
    _ range: ClosedRange<Double>? = nil,
    step: Double? = nil,
    scale: Scale? = nil
  ) -> Property {
    var wire = WireRule()
    wire.scale = scale
    return of(.number(NumberRule(range: range, step: step)), wire: wire)
  }

  /// A color with an encoding.
  static func color(_ encoding: ColorEncoding) -> Property {
    var wire = WireRule()
    wire.encoding = encoding
    return of(.color, wire: wire)
  }

  /// The result of reading text: the value's bare text, or the error.
  func reading(_ text: String) -> String {
    do throws(ValidationError) {
      return try value(from: .string(text)).bareText
    } catch {
      return "\(error)"
    }
  }

  /// The result of reading the bytes of a payload.
  func readingPayload(_ text: String) -> String {
    let bytes = Array(text.utf8)
    do throws(ValidationError) {
      return try value(fromPayload: bytes.span).bareText
    } catch {
      return "\(error)"
    }
  }

  /// The result of reading JSON.
  func reading(_ json: JSONValue) -> String {
    do throws(ValidationError) {
      return try value(from: json).bareText
    } catch {
      return "\(error)"
    }
  }
}
