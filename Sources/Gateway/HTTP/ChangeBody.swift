// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import HTTP
import JSON
import Values

/// Reads a change from a path, a query and a body: the same members as a line of the grammar.
enum ChangeBody {
  private static let options = ["id", "source", "now", "ttl", "wait"]

  /// Reads the change that a request asks for.
  ///
  /// The body of a `set` is the value itself, or an object with `value` and options beside it; that
  /// of a `step` the amount, or an object with `step`; a `toggle` needs none. The query may hold
  /// options as well, which override those of the body.
  static func request(_ operation: String, key: String, from request: HTTPRequest)
    throws(Problem) -> ControlRequest
  {
    let members = [.init("key", .string(key))] + (try content(operation, of: request))
    var change = try change(members, queryOptions(request))
    change.keepWriting(of: request.body.span)
    return change
  }

  private static func change(
    _ members: [JSONValue.Member],
    _ options: [JSONValue.Member]
  ) throws(Problem) -> ControlRequest {
    do throws(GrammarError) {
      var members = members
      // The body must be valid even where the query overrides it.
      let stated = try ControlRequest(.object(members), keys: .any)
      guard !options.isEmpty else { return stated }
      for option in options {
        members.removeAll { $0.name == option.name }
        members.append(option)
      }
      return try ControlRequest(.object(members), keys: .any)
    } catch {
      var problem = HTTPProblems.problem(error)
      // The key is the path's.
      if error.code == ErrorCode.badKey.rawValue { problem.status = 404 }
      throw problem
    }
  }

  /// Reads the properties of a device that a request sets.
  ///
  /// The body is the object of properties, or an object with it as `set` and options beside it. No
  /// property can be called `set`.
  static func deviceRequest(
    _ id: String,
    from request: HTTPRequest
  ) throws(Problem) -> ControlRequest {
    guard !id.utf8.contains(UInt8(ascii: "/")) else {
      throw HTTPProblems.problem(.unknownDevice(id, suggestion: nil), key: nil)
    }
    guard !request.body.isEmpty else {
      throw HTTPProblems.problem(
        .syntax,
        #"the properties are needed in the body, such as {"brightness":40}"#
      )
    }
    let document = try parse(request.body)
    guard case .object(let members) = document else { throw wrongProperties(document) }
    var stated: [JSONValue.Member] = [.init("set", document)]
    if let set = document["set"] {
      guard case .object = set else { throw wrongProperties(set) }
      try checkMembers(members, allowed: ["set"] + options)
      stated = members
    }
    var change = try change([.init("key", .string(id))] + stated, queryOptions(request))
    change.keepWriting(of: request.body.span)
    return change
  }

  /// Reads the options of a request that sets a scene; it needs no body.
  static func sceneRequest(
    _ id: String,
    from request: HTTPRequest
  ) throws(Problem) -> ControlRequest {
    var members: [JSONValue.Member] = []
    if !request.body.isEmpty {
      let document = try parse(request.body)
      guard case .object(let stated) = document else {
        throw HTTPProblems.problem(
          .badType,
          "the body is an object of options, or empty; found " + Excerpt.of(document)
        )
      }
      try checkMembers(stated, allowed: options)
      members = stated
    }
    guard Identifiers.problem(inDevice: id) == nil else {
      throw HTTPProblems.problem(.unknownScene(id, suggestion: nil), key: nil)
    }
    return try change([.init("scene", .string(id))] + members, queryOptions(request))
  }

  private static func wrongProperties(_ found: JSONValue) -> Problem {
    HTTPProblems.problem(
      .badType,
      #"the body is an object of properties, such as {"brightness":40}; found "#
        + Excerpt.of(found)
    )
  }

  /// Reads the pattern that a request is about, from the query or the body; `nil` if there is none.
  static func pattern(
    of request: HTTPRequest,
    beside others: [String] = []
  ) throws(Problem) -> String? {
    try checkQuery(request, allowed: ["key"] + others)
    let stated = request.target.query.first { $0.name == "key" }?.value
    guard !request.body.isEmpty else { return stated }
    let document = try parse(request.body)
    guard case .object(let members) = document, members.allSatisfy({ $0.name == "key" }) else {
      throw HTTPProblems.problem(
        .badType,
        #"the body is {"key":"PATTERN"} and nothing else; found \#(Excerpt.of(document))"#
      )
    }
    guard let member = members.first else { return stated }
    guard let pattern = member.value.string else {
      throw HTTPProblems.problem(
        .badType,
        #""key" must be a key or a pattern; found \#(Excerpt.of(member.value))"#
      )
    }
    guard stated == nil || stated == pattern else {
      throw HTTPProblems.problem(
        .severalOperations,
        "the query and the body name different keys"
      )
    }
    return pattern
  }

  /// Throws for unknown parameters, and for repeated ones other than `repeatable`.
  static func checkQuery(
    _ request: HTTPRequest,
    allowed: [String],
    repeatable: String? = nil
  ) throws(Problem) {
    var seen: Set<String> = []
    for parameter in request.target.query {
      guard allowed.contains(parameter.name) else {
        let names = allowed.isEmpty ? "none" : allowed.joined(separator: ", ")
        throw Problem(
          400,
          "unknown_parameter",
          "unknown parameter '\(Excerpt.of(parameter.name))'; allowed: \(names)"
            + Suggestion.hint(for: parameter.name, in: allowed)
        )
      }
      guard parameter.name == repeatable || seen.insert(parameter.name).inserted else {
        throw Problem(
          400,
          "unknown_parameter",
          "the parameter '\(parameter.name)' occurs more than once"
        )
      }
    }
  }

  /// Reads a flag: absent, present without a value, or `true` or `false`.
  static func flag(_ name: String, of request: HTTPRequest) throws(Problem) -> Bool {
    switch request.target.query.first(where: { $0.name == name })?.value {
    case nil, "false": return false
    case "", "true": return true
    case let other?:
      throw Problem(
        400,
        ErrorCode.badValue.rawValue,
        "\(name) is true or false; found '\(Excerpt.of(other))'"
      )
    }
  }

  private static func content(
    _ operation: String,
    of request: HTTPRequest
  ) throws(Problem) -> [JSONValue.Member] {
    guard !request.body.isEmpty else {
      guard operation == "toggle" else {
        throw HTTPProblems.problem(
          .syntax,
          operation == "set"
            ? "a value is needed in the body, such as 40"
            : "a number is needed in the body, such as 5"
        )
      }
      return [.init("toggle", true)]
    }
    let document = try parse(request.body)
    guard case .object(let members) = document,
      operation != "set" || document["value"] != nil || document["set"] != nil
    else { return [.init(operation, document)] }
    let names = (operation == "set" ? ["value", "set"] : [operation]) + options
    try checkMembers(members, allowed: names)
    if operation == "toggle", document["toggle"] == nil {
      return [.init("toggle", true)] + members
    }
    return members
  }

  private static func checkMembers(
    _ members: [JSONValue.Member],
    allowed names: [String]
  ) throws(Problem) {
    for member in members where !names.contains(member.name) {
      throw HTTPProblems.problem(
        .unknownMember,
        "unknown member '\(Excerpt.of(member.name))'; allowed: "
          + names.joined(separator: ", ") + Suggestion.hint(for: member.name, in: names)
      )
    }
  }

  private static func queryOptions(
    _ request: HTTPRequest
  ) throws(Problem) -> [JSONValue.Member] {
    try checkQuery(request, allowed: options)
    var members: [JSONValue.Member] = []
    for parameter in request.target.query {
      switch (parameter.name, parameter.value) {
      case ("now", ""), ("now", "true"): members.append(.init("now", true))
      case ("now", "false"): members.append(.init("now", false))
      case ("wait", ""): members.append(.init("wait", true))
      case ("now", let other):
        throw HTTPProblems.problem(
          .badValue,
          "now is true or false; found '\(Excerpt.of(other))'"
        )
      default: members.append(.init(parameter.name, .string(parameter.value)))
      }
    }
    return members
  }

  private static func parse(_ body: [UInt8]) throws(Problem) -> JSONValue {
    do throws(JSONParseError) {
      return try JSONParser.parse(body.span)
    } catch {
      throw HTTPProblems.problem(
        .syntax,
        "the body is not JSON: \(error.message) (line \(error.line), column \(error.column))"
      )
    }
  }
}
