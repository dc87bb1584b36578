// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import HTTP
import JSON
import Testing

@Suite struct OpenAPITests {
  private let document: JSONValue

  init() throws {
    document = try JSONParser.parse(OpenAPIDocument.bytes.span)
  }

  @Test func `the document is of OpenAPI 3.1 and every reference in it leads somewhere`() {
    #expect(document["openapi"] == "3.1.0")
    let references = Self.references(in: document)
    #expect(references.count > 50)
    for reference in references {
      var place: JSONValue? = document
      for name in reference.split(separator: "/").dropFirst() { place = place?[String(name)] }
      #expect(place != nil, "\(reference)")
    }
  }

  @Test func `each of its operations is one that the router knows, and the other way round`() throws
  {
    guard case .object(let paths) = document["paths"] else {
      Issue.record("no paths")
      return
    }
    var named: Set<String> = []
    for path in paths {
      guard case .object(let operations) = path.value else { continue }
      for operation in operations where operation.name != "parameters" {
        let method = operation.name.uppercased()
        named.insert("\(method) \(path.name)")
        _ = try Router.endpoint(method, RequestTarget(path.name).path)
      }
    }
    for path in paths {
      let segments = try RequestTarget(path.name).path
      for method in ["GET", "PUT", "POST", "DELETE", "PATCH"] {
        let isKnown = (try? Router.endpoint(method, segments)) != nil
        #expect(isKnown == named.contains("\(method) \(path.name)"), "\(method) \(path.name)")
      }
    }
    for path in ["/v1/devices", "/v1/changes", "/v1/events", "/metrics", "/healthz", "/readyz"] {
      #expect(paths.contains { $0.name == path }, "\(path)")
    }
  }

  private static func references(in value: JSONValue) -> [String] {
    switch value {
    case .object(let members):
      members.flatMap { member in
        member.name == "$ref"
          ? member.value.string.map { [$0] } ?? [] : references(in: member.value)
      }
    case .array(let elements): elements.flatMap { references(in: $0) }
    case .null, .boolean, .integer, .number, .string: []
    }
  }
}
