// Settle
// SPDX-License-Identifier: Apache-2.0

/// Topic filters by their levels, to find those that overlap another one.
///
/// Takes time in proportion to the levels of a filter, and to what its wildcards match.
package struct FilterIndex {
  private struct Node {
    var children: [String: Int] = [:]
    /// The numbers of the filters that end here.
    var ends: [Int] = []
  }

  private var nodes = [Node()]
  private let filters: [String]

  /// Indexes filters, which get numbers in their order.
  package init(_ filters: [String]) {
    self.filters = filters
    for (number, filter) in filters.enumerated() {
      var place = 0
      for level in Self.levels(filter) { place = child(level, of: place) }
      nodes[place].ends.append(number)
    }
  }

  /// The numbers of the filters that some topic could match together with `filter`, in order.
  package func overlapping(_ filter: String) -> [Int] {
    var found: [Int] = []
    collect(Self.levels(filter)[...], from: 0, to: &found)
    // Whether a wildcard may match a reserved first level is for ``Topic`` to say.
    return found.sorted().filter { Topic.overlaps(filters[$0], filter) }
  }

  private func collect(_ levels: ArraySlice<String>, from place: Int, to found: inout [Int]) {
    if levels.first == "#" { return collectAll(from: place, to: &found) }
    let node = nodes[place]
    if let rest = node.children["#"] { found += nodes[rest].ends }
    guard let level = levels.first else {
      found += node.ends
      return
    }
    let names = level == "+" ? Array(node.children.keys) : [level, "+"]
    for name in names where name != "#" {
      guard let next = node.children[name] else { continue }
      collect(levels.dropFirst(), from: next, to: &found)
    }
  }

  private func collectAll(from place: Int, to found: inout [Int]) {
    let node = nodes[place]
    found += node.ends
    for next in node.children.values { collectAll(from: next, to: &found) }
  }

  private mutating func child(_ level: String, of place: Int) -> Int {
    if let known = nodes[place].children[level] { return known }
    nodes.append(Node())
    nodes[place].children[level] = nodes.count - 1
    return nodes.count - 1
  }

  private static func levels(_ filter: String) -> [String] {
    filter.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
  }
}
