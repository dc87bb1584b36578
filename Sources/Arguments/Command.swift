// Settle
// SPDX-License-Identifier: Apache-2.0

/// Placeholder for the declarative command-line parser.
package protocol Command {}
