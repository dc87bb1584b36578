// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices

extension YAMLNode {
  /// The node with marks in place of placeholders, in all of its strings but the keys of sections.
  ///
  /// A node without placeholders stays itself.
  func marked() -> YAMLNode {
    switch content {
    case .scalar(let text, let isPlain):
      let marked = TemplateMark.marked(text)
      return marked == text ? self : YAMLNode(.scalar(marked, isPlain: isPlain), at: position)
    case .sequence(let elements):
      let marked = elements.map { $0.marked() }
      let isSame = zip(marked, elements).allSatisfy { $0 === $1 }
      return isSame ? self : YAMLNode(.sequence(marked), at: position)
    case .mapping(let pairs):
      let marked = pairs.map { pair in
        Pair(
          key: TemplateMark.marked(pair.key),
          keyPosition: pair.keyPosition,
          value: pair.value.marked()
        )
      }
      let isSame = zip(marked, pairs).allSatisfy { $0.key == $1.key && $0.value === $1.value }
      return isSame ? self : YAMLNode(.mapping(marked), at: position)
    }
  }

  /// The first mark in any string that `isWrong`, with its position.
  func firstMark(where isWrong: (Int) -> Bool) -> (number: Int, position: SourcePosition)? {
    switch content {
    case .scalar(let text, _):
      return TemplateMark.numbers(in: text).sorted().first(where: isWrong).map { ($0, position) }
    case .sequence(let elements):
      for element in elements {
        if let found = element.firstMark(where: isWrong) { return found }
      }
      return nil
    case .mapping(let pairs):
      for pair in pairs {
        if let number = TemplateMark.numbers(in: pair.key).sorted().first(where: isWrong) {
          return (number, pair.keyPosition)
        }
        if let found = pair.value.firstMark(where: isWrong) { return found }
      }
      return nil
    }
  }
}
