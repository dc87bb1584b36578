// Settle
// SPDX-License-Identifier: Apache-2.0

/// What one source announced: the devices in a stable order, and what could not be taken.
struct Findings: Sendable {
  var devices: [ImportedDevice] = []
  var remarks: [Remark] = []

  mutating func remark(_ kind: Remark.Kind, _ subject: String, _ reason: String) {
    let remark = Remark(kind, PlainText.clean(subject, limit: 80), reason)
    if !remarks.contains(remark) { remarks.append(remark) }
  }

  static func + (left: Findings, right: Findings) -> Findings {
    Findings(devices: left.devices + right.devices, remarks: left.remarks + right.remarks)
  }
}
