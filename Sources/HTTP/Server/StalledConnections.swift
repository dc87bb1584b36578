// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut

/// The address that has the most connections that wait for their client.
struct StalledConnections {
  /// How many connections of that address wait.
  private(set) var count = 0
  /// The one among them that has waited for longest.
  private(set) var oldest: HTTPConnection?

  /// Of addresses with equally many, the one that has waited for longest counts.
  init(_ connections: some Sequence<HTTPConnection>) {
    var crowds: [String: (count: Int, since: Moment, oldest: HTTPConnection)] = [:]
    for connection in connections {
      guard let since = connection.stalledSince else { continue }
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
