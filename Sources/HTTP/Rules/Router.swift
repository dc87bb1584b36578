// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
internal import Values

/// The resource that a path names.
package enum Endpoint: Hashable, Sendable {
  case devices
  case device(String)
  /// The key in the path.
  case property(String)
  case step(String)
  case toggle(String)
  case scene(String)
  case changes
  case pending
  case history
  case status
  case flush
  case cancel
  case events
  case metrics
  case health
  case readiness
  case openAPI
  /// What the panel keeps for all screens.
  case panelDocument
  /// The page, or one of its files; of a version that the client names.
  case panel(String?, version: String? = nil)
}

/// Finds the endpoint of a request.
package enum Router {
  /// All paths, for suggestions.
  static let paths = [
    "/v1/devices", "/v1/changes", "/v1/pending", "/v1/history", "/v1/status", "/v1/flush",
    "/v1/cancel", "/v1/events", "/v1/panel",
    "/v1/openapi.json", "/metrics", "/healthz", "/readyz",
  ]

  /// The endpoint for a path and a method.
  ///
  /// - Throws: 404 with a suggestion, or 405 with the allowed methods.
  package static func endpoint(
    _ method: String,
    _ path: [String]
  ) throws(Problem) -> Endpoint {
    guard let endpoint = endpoint(path) else {
      let text = "/" + path.joined(separator: "/")
      let meant = Suggestion.nearest(to: text, in: paths)
      throw Problem(
        404,
        "not_found",
        "no resource at '\(Excerpt.of(text))'\(Suggestion.question(meant))",
        members: meant.map { [.init("suggestion", .string($0))] } ?? []
      )
    }
    let allowed = endpoint.methods
    guard allowed.contains(method) else {
      throw Problem(
        405,
        "method_not_allowed",
        "'\(Excerpt.of(method))' does not go with this path; allowed: "
          + allowed.joined(separator: ", "),
        members: [.init("allowed", .array(allowed.map { .string($0) }))],
        headers: [HTTPHeader("Allow", allowed.joined(separator: ", "))]
      )
    }
    return endpoint
  }

  /// The resources of one level below `/v1`, other than devices.
  private static let resources: [String: Endpoint] = [
    "changes": .changes, "pending": .pending, "history": .history, "status": .status,
    "flush": .flush, "cancel": .cancel, "events": .events, "panel": .panelDocument,
    "openapi.json": .openAPI,
  ]

  private static func endpoint(_ path: [String]) -> Endpoint? {
    switch path {
    case [""]: return .panel(nil)
    case ["metrics"]: return .metrics
    case ["healthz"]: return .health
    case ["readyz"]: return .readiness
    default: break
    }
    if path.first == "panel", let name = path.last, !name.isEmpty {
      if path.count == 2 { return .panel(name) }
      if path.count == 3 { return .panel(name, version: path[1]) }
    }
    guard path.first == "v1", path.count > 1 else { return nil }
    if path[1] == "scenes", path.count == 3, !path[2].isEmpty { return .scene(path[2]) }
    guard path[1] == "devices" else { return path.count == 2 ? resources[path[1]] : nil }
    guard path.count > 2 else { return .devices }
    guard !path[2].isEmpty, path.count < 4 || !path[3].isEmpty else { return nil }
    switch path.count {
    case 3: return .device(path[2])
    case 4: return .property("\(path[2])/\(path[3])")
    case 5 where path[4] == "step": return .step("\(path[2])/\(path[3])")
    case 5 where path[4] == "toggle": return .toggle("\(path[2])/\(path[3])")
    default: return nil
    }
  }
}

extension Endpoint {
  /// The allowed methods.
  package var methods: [String] {
    switch self {
    case .devices, .pending, .history, .status, .events, .metrics, .health, .readiness, .openAPI,
      .panel:
      ["GET", "HEAD", "OPTIONS"]
    case .device, .property, .panelDocument: ["GET", "HEAD", "PUT", "OPTIONS"]
    case .step, .toggle, .scene, .changes, .flush, .cancel: ["POST", "OPTIONS"]
    }
  }

  /// Whether a request with this method changes something.
  package func isChanged(by method: String) -> Bool {
    methods.contains(method) && (method == "PUT" || method == "POST")
  }

  /// Whether no token is required: it only reports whether the gateway is alive, or is the page
  /// that prompts for the token.
  package var isOpen: Bool {
    switch self {
    case .health, .readiness, .panel: true
    case .devices, .device, .property, .step, .toggle, .scene, .changes, .pending, .history,
      .status, .flush, .cancel, .events, .metrics, .openAPI, .panelDocument:
      false
    }
  }

  /// The allowed media types of a body; empty if there is no body.
  package func mediaTypes(_ method: String) -> [String] {
    switch (self, method) {
    case (.changes, "POST"): ["application/x-ndjson", "application/json"]
    case (.device, "PUT"), (.property, "PUT"), (.step, "POST"), (.toggle, "POST"), (.flush, "POST"),
      (.scene, "POST"), (.cancel, "POST"), (.panelDocument, "PUT"):
      ["application/json"]
    default: []
    }
  }
}

/// The OpenAPI 3.1 document of this API, embedded in the binary.
package enum OpenAPIDocument {
  package static var bytes: [UInt8] { PackageResources.openapi_json }
}
