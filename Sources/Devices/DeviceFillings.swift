// Settle
// SPDX-License-Identifier: Apache-2.0

/// What fills the marks of one device of a template, in little memory: the texts in order of their
/// marks, with slashes between them.
///
/// No text has a slash: each is an item of a list or a level of a topic.
package struct DeviceFillings: Hashable, Sendable {
  let text: String

  /// Fills nothing, for a device of its own.
  static let none = DeviceFillings(text: "")

  init(text: String) { self.text = text }

  /// The fillings of some marks.
  init(_ fillings: [Int: DeviceTemplate.Filling], marks: [Int]) {
    text = marks.map { fillings[$0]?.text ?? TemplateMark.name($0) }.joined(separator: "/")
  }

  /// The fillings by mark.
  func byMark(_ marks: [Int]) -> [Int: DeviceTemplate.Filling] {
    guard marks.count != 1 else { return [marks[0]: DeviceTemplate.Filling(text)] }
    let texts = text.split(separator: "/", omittingEmptySubsequences: false)
    return [Int: DeviceTemplate.Filling](
      zip(marks, texts.lazy.map { DeviceTemplate.Filling(String($0)) })
    ) { first, _ in first }
  }

  /// `pattern` with these texts in place of its marks.
  func fill(_ pattern: String, marks: [Int]) -> String {
    guard marks.count != 1 else {
      return TemplateMark.replaced(pattern) { _ in Array(text.utf8) }
    }
    let fillings = byMark(marks)
    return TemplateMark.replaced(pattern) { Array((fillings[$0]?.text ?? "").utf8) }
  }
}
