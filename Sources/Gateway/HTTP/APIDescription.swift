// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import HTTP
import JSON
import JSONParsing

/// The OpenAPI document, for clients that need a token and for those that need none.
struct APIDescription {
  let open: [UInt8]
  let guarded: [UInt8]

  init() {
    open = Self.document(security: .array([]))
    guarded = Self.document(security: .array([.object([.init("token", .array([]))])]))
  }

  /// The document of the build with another `security`.
  private static func document(security: JSONValue) -> [UInt8] {
    let bytes = OpenAPIDocument.bytes
    guard case .object(var members)? = try? JSONParser.parse(bytes.span),
      let place = members.firstIndex(where: { $0.name == "security" })
    else { return bytes }
    members[place].value = security
    return JSONWriter.bytes(.object(members)) + [0x0A]
  }
}
