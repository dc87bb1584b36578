// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices

/// Collects the mistakes and warnings of all files.
final class Problems {
  /// The maximum number of mistakes to collect.
  private static let maximum = 1_000

  private(set) var errors: [ConfigurationProblem] = []
  private(set) var warnings: [ConfigurationProblem] = []
  /// Filters duplicates: a profile's mistake is found once for each device that uses it.
  private var seen: Set<ConfigurationProblem> = []
  private var unknownKeys: Set<SourcePosition> = []
  /// Positions where further mistakes are consequences of the first.
  private var blocked: Set<SourcePosition> = []
  private var order: [String: Int] = [:]

  /// The number of mistakes so far; compare before and after a step to see whether it failed.
  var count: Int { errors.count }

  func add(_ problem: ConfigurationProblem) {
    recordFile(problem.file)
    let position = SourcePosition(file: problem.file, line: problem.line, column: problem.column)
    guard !isFull, !blocked.contains(position), seen.insert(problem).inserted else { return }
    errors.append(problem)
    guard isFull else { return }
    var last = problem
    last.message = "more than \(Self.maximum) mistakes; the rest is not shown"
    last.suggestion = nil
    errors.append(last)
  }

  /// Whether an unknown key is seen for the first time; YAML aliases repeat the same key.
  func isNewKey(_ position: SourcePosition) -> Bool {
    !isFull && unknownKeys.insert(position).inserted
  }

  private var isFull: Bool { errors.count >= Self.maximum }

  /// Suppresses further mistakes at a position, because they would be consequences of the first.
  func block(_ position: SourcePosition) { blocked.insert(position) }

  func add(_ position: SourcePosition, _ message: String, suggestion: String? = nil) {
    add(
      ConfigurationProblem(
        file: position.file,
        line: position.line,
        column: position.column,
        message: TemplateMark.unmarked(message),
        suggestion: suggestion.map { TemplateMark.unmarked($0) }
      )
    )
  }

  func warn(_ position: SourcePosition, _ message: String, suggestion: String? = nil) {
    let problem = ConfigurationProblem(
      file: position.file,
      line: position.line,
      column: position.column,
      message: TemplateMark.unmarked(message),
      suggestion: suggestion.map { TemplateMark.unmarked($0) }
    )
    recordFile(problem.file)
    if seen.insert(problem).inserted { warnings.append(problem) }
  }

  /// Records the order in which files are read.
  func recordFile(_ file: String) {
    if order[file] == nil { order[file] = order.count }
  }

  /// Sorts by file in the order of reading, then by position.
  func sorted(_ problems: [ConfigurationProblem]) -> [ConfigurationProblem] {
    problems.sorted { left, right in
      (order[left.file] ?? 0, left.line, left.column, left.message)
        < (order[right.file] ?? 0, right.line, right.column, right.message)
    }
  }
}
