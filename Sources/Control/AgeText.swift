// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON

/// Durations for people: `0.3s`, `12s`, `5m`, `3h`, `2d`.
package enum AgeText {
  /// A duration in milliseconds in short form.
  package static func text(_ milliseconds: Int) -> String {
    switch milliseconds {
    case ..<10_000: JSONWriter.text(.number(Double(milliseconds / 100) / 10)) + "s"
    case ..<120_000: "\(milliseconds / 1000)s"
    case ..<7_200_000: "\(milliseconds / 60_000)m"
    case ..<172_800_000: "\(milliseconds / 3_600_000)h"
    default: "\(milliseconds / 86_400_000)d"
    }
  }
}
