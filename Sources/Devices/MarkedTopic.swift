// Settle
// SPDX-License-Identifier: Apache-2.0

/// A topic of a template, from which the device that it belongs to can be told.
package struct MarkedTopic: Sendable {
  /// A level with a mark.
  package struct Level: Sendable {
    /// Its position among the levels of the topic.
    package let position: Int
    let mark: Int
    let prefix: [UInt8]
    let suffix: [UInt8]
  }

  package let levels: [Level]
  /// The topic with `+` in place of each level with a mark.
  package let filter: String
  /// Whether a mark is always all of its level.
  package let hasWholeLevels: Bool

  /// Reads a topic of devices whose identifiers have these marks.
  ///
  /// Returns `nil` where the topic is not each device's own, or a level has several marks.
  package init?(_ topic: String, marks: [Int]) {
    var levels: [Level] = []
    var filter: [Substring] = []
    let parts = topic.split(separator: "/", omittingEmptySubsequences: false)
    for (position, part) in parts.enumerated() {
      let marks = TemplateMark.numbers(in: String(part))
      let pieces = TemplateMark.pieces(of: String(part))
      guard pieces.count <= 2 else { return nil }
      guard let mark = marks.first, pieces.count == 2 else {
        filter.append(part)
        continue
      }
      levels.append(Level(position: position, mark: mark, prefix: pieces[0], suffix: pieces[1]))
      filter.append("+")
    }
    guard !marks.isEmpty, Set(levels.map(\.mark)) == Set(marks) else { return nil }
    self.levels = levels
    self.filter = filter.joined(separator: "/")
    hasWholeLevels = levels.allSatisfy { $0.prefix.isEmpty && $0.suffix.isEmpty }
  }

  /// The device of `definition` that `topic` belongs to, whose levels other than ``levels`` match
  /// already.
  ///
  /// `bounds` has the range of each level of the topic.
  package func device(
    _ topic: Span<UInt8>,
    levels bounds: [Range<Int>],
    of definition: DeviceDefinition,
    in registry: Registry
  ) -> Int? {
    var texts: [(mark: Int, range: Range<Int>)] = []
    for level in levels {
      let range = bounds[level.position]
      guard range.count > level.prefix.count + level.suffix.count else { return nil }
      let inner = range.lowerBound + level.prefix.count..<range.upperBound - level.suffix.count
      for (place, byte) in level.prefix.enumerated()
      where topic[range.lowerBound + place] != byte { return nil }
      for (place, byte) in level.suffix.enumerated()
      where topic[inner.upperBound + place] != byte { return nil }
      if let known = texts.first(where: { $0.mark == level.mark }) {
        guard Self.areEqual(topic.extracting(known.range), topic.extracting(inner)) else {
          return nil
        }
      } else {
        texts.append((level.mark, inner))
      }
    }
    var id: [UInt8] = []
    for piece in definition.idPieces {
      id += piece.text
      guard let range = texts.first(where: { $0.mark == piece.mark })?.range else { continue }
      for place in range { id.append(topic[place]) }
    }
    guard let number = registry.deviceIndex(ofID: id.span),
      registry.definition(ofDevice: number) === definition
    else { return nil }
    // Different texts may make the same identifier of several marks.
    guard texts.count > 1 else { return number }
    let fillings = registry.tables.fillings(ofDevice: number).byMark(definition.marks)
    let isSame = texts.allSatisfy { mark, range in
      guard let text = fillings[mark]?.text else { return false }
      return Self.areEqual(topic.extracting(range), text.utf8.span)
    }
    return isSame ? number : nil
  }

  private static func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    for place in left.indices where left[place] != right[place] { return false }
    return true
  }
}
