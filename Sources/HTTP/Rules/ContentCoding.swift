// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a client says about compressed bodies.
package enum ContentCoding {
  /// Whether a client with these values of `Accept-Encoding` reads gzip.
  package static func acceptsGzip(_ values: [String]) -> Bool {
    var any: Bool?
    for entry in values.flatMap({ $0.split(separator: ",") }) {
      let parts = entry.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
      guard let name = parts.first?.lowercased() else { continue }
      // "q=0" and "q=0.0" mean: not this one.
      let isWanted = !parts.dropFirst().contains { part in
        part.lowercased().hasPrefix("q=") && part.dropFirst(2).allSatisfy { $0 == "0" || $0 == "." }
      }
      if name == "gzip" || name == "x-gzip" { return isWanted }
      if name == "*" { any = isWanted }
    }
    return any ?? false
  }
}
