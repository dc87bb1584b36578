// Settle
// SPDX-License-Identifier: Apache-2.0

/// Collects the mistakes of all files.
final class Problems {
  /// How many mistakes are kept.
  private static let maximum = 1_000

  private(set) var errors: [ConfigurationProblem] = []
  private(set) var warnings: [ConfigurationProblem] = []
  /// A profile's mistake is found once for each device that uses it.
  private var seen: Set<ConfigurationProblem> = []
  private var unknownKeys: Set<SourcePosition> = []
  /// Places whose further mistakes follow from the first.
  private var blocked: Set<SourcePosition> = []
  private var order: [String: Int] = [:]

  /// How many mistakes there are; compare before and after to see whether something failed.
  var count: Int { errors.count }

  func add(_ problem: ConfigurationProblem) {
    note(problem.file)
    let place = SourcePosition(file: problem.file, line: problem.line, column: problem.column)
    guard !isFull, !blocked.contains(place), seen.insert(problem).inserted else { return }
    errors.append(problem)
    guard isFull else { return }
    var last = problem
    last.message = "more than \(Self.maximum) mistakes; the rest is not shown"
    last.suggestion = nil
    errors.append(last)
  }

  /// Whether an unknown key is met for the first time; aliases bring the same key again and again.
  func isNewKey(_ position: SourcePosition) -> Bool {
    !isFull && unknownKeys.insert(position).inserted
  }

  private var isFull: Bool { errors.count >= Self.maximum }

  /// Keeps quiet about a place from now on, where one mistake would lead to others.
  func block(_ position: SourcePosition) { blocked.insert(position) }

  func add(_ position: SourcePosition, _ message: String, suggestion: String? = nil) {
    add(
      ConfigurationProblem(
        file: position.file,
        line: position.line,
        column: position.column,
        message: message,
        suggestion: suggestion
      )
    )
  }

  func warn(_ position: SourcePosition, _ message: String, suggestion: String? = nil) {
    let problem = ConfigurationProblem(
      file: position.file,
      line: position.line,
      column: position.column,
      message: message,
      suggestion: suggestion
    )
    note(problem.file)
    if seen.insert(problem).inserted { warnings.append(problem) }
  }

  /// Remembers the order in which files were read.
  func note(_ file: String) {
    if order[file] == nil { order[file] = order.count }
  }

  /// By file in the order read, then by place.
  func sorted(_ problems: [ConfigurationProblem]) -> [ConfigurationProblem] {
    problems.sorted { left, right in
      (order[left.file] ?? 0, left.line, left.column, left.message)
        < (order[right.file] ?? 0, right.line, right.column, right.message)
    }
  }
}
