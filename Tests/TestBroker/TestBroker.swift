// Settle
// SPDX-License-Identifier: Apache-2.0

package import PrivateBroker

/// The broker that tests use: the private one of the demo.
package typealias TestBroker = PrivateBroker
