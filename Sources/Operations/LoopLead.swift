// Settle
// SPDX-License-Identifier: Apache-2.0

/// Leads to an object for as long as its owner says so, on the loop's thread.
///
/// For handlers that outlive the object. A weak reference would do the same, but an object that has
/// ever had one keeps its counts in a place of their own, and each count of references to it costs
/// ten times as much from then on. The object must call ``end()`` in its `deinit`.
@safe package final class LoopLead<Object: AnyObject> {
  private var target: Unmanaged<Object>?

  package init() {}

  /// Leads to `object` from now on.
  package func begin(_ object: Object) { unsafe target = Unmanaged.passUnretained(object) }

  /// Leads nowhere any more.
  package func end() { unsafe target = nil }

  /// The object; kept while the caller uses it.
  package var object: Object? { unsafe target?.takeUnretainedValue() }
}
