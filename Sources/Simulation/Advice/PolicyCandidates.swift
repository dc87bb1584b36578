// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The policies that are tried, the simplest first.
enum PolicyCandidates {
  static let all: [Policy] = plain + bounded + leading + live

  private static let delays = [100, 200, 300, 500, 800]

  /// The quiet period alone.
  private static let plain = delays.map { Policy(delay: .milliseconds($0)) }

  /// The quiet period with a longest wait.
  private static let bounded = delays.flatMap { delay in
    [1, 2].map { Policy(delay: .milliseconds(delay), maxWait: .seconds($0)) }
  }

  /// The first change at once.
  private static let leading = [200, 300, 500].flatMap { delay in
    [nil, .seconds(1)].map {
      Policy(delay: .milliseconds(delay), maxWait: $0, leading: true)
    }
  }

  /// The first change at once, then one value per interval.
  private static let live = [100, 200, 500, 1000].map { interval in
    let interval = Duration.milliseconds(interval)
    return Policy(delay: interval, maxWait: interval, leading: true, minInterval: interval)
  }
}
