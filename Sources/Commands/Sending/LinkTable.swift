// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Doubly linked lists through fixed nodes: adding and removing cost constant time and no memory.
struct LinkTable {
  /// One list; each node is in at most one.
  struct List {
    fileprivate(set) var head: Int32 = -1
    fileprivate(set) var tail: Int32 = -1

    var isEmpty: Bool { head < 0 }
    var first: Int32? { head < 0 ? nil : head }
  }

  private struct Link {
    var next: Int32 = -1
    var previous: Int32 = -1
  }

  private var links: LazyArray<Link>

  init(nodes: Int) {
    links = LazyArray(repeating: Link(), count: nodes)
  }

  /// Makes room for more nodes.
  mutating func extend(toNodes count: Int) {
    links.extend(to: count)
  }

  /// Puts `node`, which is in no list, at the end of `list`.
  mutating func append(_ node: Int32, to list: inout List) {
    links[Int(node)] = Link(next: -1, previous: list.tail)
    if list.tail >= 0 { links[Int(list.tail)].next = node } else { list.head = node }
    list.tail = node
  }

  /// The nodes of `list`, from its head.
  func nodes(of list: List) -> [Int32] {
    var nodes: [Int32] = []
    var node = list.head
    while node >= 0 {
      nodes.append(node)
      node = links[Int(node)].next
    }
    return nodes
  }

  /// Removes `node` from `list`, which it must be in.
  mutating func remove(_ node: Int32, from list: inout List) {
    let link = links[Int(node)]
    if link.previous >= 0 {
      links[Int(link.previous)].next = link.next
    } else {
      list.head = link.next
    }
    if link.next >= 0 {
      links[Int(link.next)].previous = link.previous
    } else {
      list.tail = link.previous
    }
  }
}
