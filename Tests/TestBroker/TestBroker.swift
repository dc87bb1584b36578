// Settle
// SPDX-License-Identifier: Apache-2.0

package import PrivateBroker

/// The broker that tests run against: the demo's private one.
package typealias TestBroker = PrivateBroker
