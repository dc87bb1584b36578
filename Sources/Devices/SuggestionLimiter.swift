// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
package import Values

/// Bounds the work for suggestions: at most one search a second.
///
/// An error that comes too early stays without a suggestion, unless it is the same as the last one:
/// a repeated mistake gets the same answer.
package struct SuggestionLimiter: Sendable {
  private static let interval = Duration.seconds(1)

  /// The searches so far.
  package private(set) var searches: UInt64 = 0
  private var next = Moment.zero
  private var last: (error: ValidationError, answer: ValidationError, registry: ObjectIdentifier)?

  package init() {}

  /// An error about an unknown key, with a suggestion if there is one and a search may be made.
  ///
  /// All other errors are returned as they are.
  package mutating func suggesting(
    _ error: ValidationError,
    from registry: Registry,
    at now: Moment
  ) -> ValidationError {
    guard error.isUnknownKey else { return error }
    if let last, last.error == error, last.registry == ObjectIdentifier(registry) {
      return last.answer
    }
    guard next <= now else { return registry.listing(error) }
    next = now.advanced(by: Self.interval)
    searches += 1
    let answer = registry.suggesting(error)
    last = (error, answer, ObjectIdentifier(registry))
    return answer
  }
}

extension ValidationError {
  /// Whether there is no such device, property or scene.
  fileprivate var isUnknownKey: Bool {
    switch self {
    case .unknownDevice, .unknownProperty, .unknownScene, .invalidKey, .unknownName: true
    case .inProperty, .wrongType, .outOfRange, .notAChoice, .unsupported, .noBase,
      .tooManyPending, .tooManyActions, .noRoomForAll, .notDurable, .shuttingDown, .held:
      false
    }
  }
}
