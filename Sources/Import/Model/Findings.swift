// Settle
// SPDX-License-Identifier: Apache-2.0

/// What one source announced: the devices in a stable order, and what could not be taken.
struct Findings: Sendable {
  var devices: [ImportedDevice] = []
  private(set) var remarks: [Remark] = []
  private var seen: Set<Remark> = []

  mutating func remark(_ kind: Remark.Kind, _ subject: String, _ reason: String) {
    // Announced text must not steer the terminal that it is shown on.
    let remark = Remark(
      kind,
      PlainText.clean(subject, limit: 80),
      PlainText.clean(reason, limit: 4000)
    )
    if seen.insert(remark).inserted { remarks.append(remark) }
  }

  static func + (left: Findings, right: Findings) -> Findings {
    var sum = left
    sum.devices += right.devices
    for remark in right.remarks where sum.seen.insert(remark).inserted {
      sum.remarks.append(remark)
    }
    return sum
  }
}
