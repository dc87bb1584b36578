// Settle
// SPDX-License-Identifier: Apache-2.0

/// A private mosquitto process on a free loopback port, for tests and the demo.
package final class TestBroker {
}
