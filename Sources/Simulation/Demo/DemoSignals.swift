// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The signals that end the demo.
enum DemoSignals {
  static let ending = [SIGINT, SIGTERM, SIGHUP]
}
