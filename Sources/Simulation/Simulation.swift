// Settle
// SPDX-License-Identifier: Apache-2.0

/// Placeholder.
package enum SimulationPlaceholder {}
