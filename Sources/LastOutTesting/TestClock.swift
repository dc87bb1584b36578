// Settle
// SPDX-License-Identifier: Apache-2.0

public import LastOut

/// Placeholder until the test clock is written.
public enum TestClockPlaceholder {}
