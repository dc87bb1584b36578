// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut

/// The address that has the most connections whose head is not whole.
struct UnfinishedHeads {
  /// The unfinished heads of that address.
  private(set) var count = 0
  /// The one among them that began first.
  private(set) var oldest: HTTPConnection?

  /// Of addresses with equally many, the one whose head began first counts.
  init(_ connections: some Sequence<HTTPConnection>) {
    var crowds: [String: (count: Int, since: Moment, oldest: HTTPConnection)] = [:]
    for connection in connections {
      guard let since = connection.headSince else { continue }
      guard let crowd = crowds[connection.peer] else {
        crowds[connection.peer] = (1, since, connection)
        continue
      }
      let isOlder = since < crowd.since
      crowds[connection.peer] = (
        crowd.count + 1, isOlder ? since : crowd.since, isOlder ? connection : crowd.oldest
      )
    }
    let largest = crowds.values.max { ($0.count, $1.since) < ($1.count, $0.since) }
    count = largest?.count ?? 0
    oldest = largest?.oldest
  }
}
