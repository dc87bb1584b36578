// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON

/// What a timeline's queue carries: any JSON, or a value of a property.
enum PlayedValue: Sendable {
  case free(JSONValue)
  case typed(Value)

  var json: JSONValue {
    switch self {
    case .free(let value): value
    case .typed(let value): value.json
    }
  }
}
