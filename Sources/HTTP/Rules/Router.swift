// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
import JSON

/// What a path stands for.
package enum Endpoint: Hashable, Sendable {
  case devices
  case device(String)
  /// The key as the path names it.
  case property(String)
  case step(String)
  case toggle(String)
  case changes
  case pending
  case flush
  case cancel
  case events
  case metrics
  case health
  case readiness
  case openAPI
  /// The page, or one of its files.
  case panel(String?)
}

/// Finds what a request is about.
package enum Router {
  /// The paths there are, for those who look for another one.
  static let paths = [
    "/v1/devices", "/v1/changes", "/v1/pending", "/v1/flush", "/v1/cancel", "/v1/events",
    "/v1/openapi.json", "/metrics", "/healthz", "/readyz",
  ]

  /// What the path and the method mean.
  ///
  /// - Throws: 404 with a near miss, or 405 with what is allowed.
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
        "there is nothing at '\(Excerpt.of(text))'\(Suggestion.question(meant))",
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

  private static func endpoint(_ path: [String]) -> Endpoint? {
    switch path {
    case [""]: return .panel(nil)
    case ["metrics"]: return .metrics
    case ["healthz"]: return .health
    case ["readyz"]: return .readiness
    default: break
    }
    if path.first == "panel", path.count == 2, !path[1].isEmpty { return .panel(path[1]) }
    guard path.first == "v1", path.count > 1 else { return nil }
    guard path[1] == "devices" else {
      guard path.count == 2 else { return nil }
      switch path[1] {
      case "changes": return .changes
      case "pending": return .pending
      case "flush": return .flush
      case "cancel": return .cancel
      case "events": return .events
      case "openapi.json": return .openAPI
      default: return nil
      }
    }
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
  /// The methods that go with it.
  package var methods: [String] {
    switch self {
    case .devices, .device, .pending, .events, .metrics, .health, .readiness, .openAPI, .panel:
      ["GET", "HEAD", "OPTIONS"]
    case .property: ["GET", "HEAD", "PUT", "OPTIONS"]
    case .step, .toggle, .changes, .flush, .cancel: ["POST", "OPTIONS"]
    }
  }

  /// Whether anybody may ask, without a token: it tells whether the gateway lives, no more, or is
  /// the page that asks for the token.
  package var isOpen: Bool {
    switch self {
    case .health, .readiness, .panel: true
    case .devices, .device, .property, .step, .toggle, .changes, .pending, .flush, .cancel,
      .events, .metrics, .openAPI:
      false
    }
  }

  /// The media types that a body may have; none where there is no body.
  package func mediaTypes(_ method: String) -> [String] {
    switch (self, method) {
    case (.changes, "POST"): ["application/x-ndjson", "application/json"]
    case (.property, "PUT"), (.step, "POST"), (.toggle, "POST"), (.flush, "POST"),
      (.cancel, "POST"):
      ["application/json"]
    default: []
    }
  }
}
