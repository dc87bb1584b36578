// Settle
// SPDX-License-Identifier: Apache-2.0

extension StatusReport {
  /// Why commands of these keys cannot leave now, in words; `nil` if nothing is in their way.
  package func hindrance(of keys: some Sequence<String>) -> String? {
    if let broker = brokers.first, !broker.isConnected {
      let reason = broker.reason.map { ": \($0)" } ?? ""
      return "the broker \(broker.url) is not connected\(reason)"
    }
    let wanted = Set(keys.map { String($0.prefix { $0 != "/" }) })
    let away = devices.away.map(\.id).filter(wanted.contains)
    guard !away.isEmpty else {
      let asleep = devices.sleepers.map(\.id).filter(wanted.contains)
      guard !asleep.isEmpty else { return nil }
      return "\(asleep.joined(separator: ", ")) \(asleep.count == 1 ? "is" : "are") asleep"
    }
    return "\(away.joined(separator: ", ")) \(away.count == 1 ? "is" : "are") offline"
  }
}
