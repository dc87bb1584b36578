// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Cuts a stream of bytes into lines: bytes in with ``append(_:)``, lines out with ``next()``.
///
/// A line ends with LF or CR LF and does not contain it. Blank lines are skipped but counted. A
/// line above the limit is reported once, as soon as that is certain, and skipped to its end. The
/// buffer holds at most the limit and one chunk.
package struct LineFramer: Sendable {
  package enum Output: Hashable, Sendable {
    /// A complete line; the slice may be kept.
    case line(ArraySlice<UInt8>, number: Int)
    /// A line had more bytes than the limit.
    case tooLong(number: Int)
  }

  /// The maximum length of a line in bytes, without its end.
  package let limit: Int
  private var buffer: [UInt8] = []
  /// Where the current line starts in ``buffer``.
  private var start = 0
  /// Up to where ``buffer`` has been searched for a line break.
  private var searched = 0
  /// The number of lines before the current one.
  private var lineCount = 0
  /// Whether the current line was reported as too long; its rest is dropped.
  private var isSkipping = false

  package init(limit: Int = 64 * 1024) {
    precondition(limit > 0, "A line framer needs room for at least one byte.")
    self.limit = limit
  }

  /// Whether all bytes have been read.
  package var isEmpty: Bool { start == buffer.count }

  /// A line has begun and not ended.
  package var isInLine: Bool { isSkipping || !isEmpty }

  /// Appends the next bytes of the stream; read the lines before appending more.
  package mutating func append(_ bytes: Span<UInt8>) {
    if start > 0 {
      buffer.removeFirst(start)
      searched -= start
      start = 0
    }
    unsafe bytes.withUnsafeBufferPointer { unsafe buffer.append(contentsOf: $0) }
  }

  /// The next line, or `nil` until more bytes arrive.
  // Inlined for the start of `settle`, which this shortens by a sixth of its instructions:
  // destroying an optional output elsewhere needs metadata that the runtime creates first.
  @inline(__always)
  package mutating func next() -> Output? {
    while let end = nextLineFeed() {
      let line = buffer[start..<end]
      start = end + 1
      searched = start
      lineCount += 1
      if isSkipping {
        isSkipping = false
        continue
      }
      let content = line.last == 0x0D ? line.dropLast() : line
      if content.count > limit { return .tooLong(number: lineCount) }
      if !content.allSatisfy(Self.isBlank) { return .line(content, number: lineCount) }
    }
    return reportIfTooLong()
  }

  /// Ends the input; `nil` when it ended with a line break, or in a line already reported.
  ///
  /// The bytes after the last line break are a line, which may be complete. A truncated line is
  /// never a complete JSON object.
  package mutating func finish() -> Output? {
    let rest = buffer[start...]
    let wasSkipping = isSkipping
    start = buffer.count
    searched = start
    isSkipping = false
    guard !wasSkipping, !rest.allSatisfy(Self.isBlank) else { return nil }
    lineCount += 1
    return .line(rest, number: lineCount)
  }

  private func nextLineFeed() -> Int? {
    unsafe buffer.withUnsafeBytes { bytes in
      guard searched < bytes.count, let start = bytes.baseAddress else { return nil }
      let found = unsafe memchr(start + searched, 0x0A, bytes.count - searched)
      return unsafe found.map { unsafe UnsafeRawPointer($0) - start }
    }
  }

  private mutating func reportIfTooLong() -> Output? {
    searched = buffer.count
    // One more byte may be the CR of the line's end.
    guard isSkipping || buffer.count - start > limit + 1 else { return nil }
    start = buffer.count
    guard !isSkipping else { return nil }
    isSkipping = true
    return .tooLong(number: lineCount + 1)
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0D
  }
}
