// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Cuts a stream of bytes into lines: bytes in with ``append(_:)``, lines out with ``next()``.
///
/// A line ends with LF or CR LF and does not contain it. Blank lines are skipped but counted. A line
/// beyond the limit is reported once, as soon as that is certain, and skipped to its end. Keeps no
/// more than the limit and one chunk.
package struct LineFramer: Sendable {
  package enum Output: Hashable, Sendable {
    /// A whole line; the slice may be kept.
    case line(ArraySlice<UInt8>, number: Int)
    /// A line had more bytes than the limit.
    case tooLong(number: Int)
  }

  /// What stood behind the last line break when the input ended.
  package struct Remainder: Hashable, Sendable {
    package let bytes: ArraySlice<UInt8>
    package let number: Int
  }

  /// The most bytes of a line, its end not counted.
  package let limit: Int
  private var buffer: [UInt8] = []
  /// Where the current line starts in ``buffer``.
  private var start = 0
  /// Up to where ``buffer`` has been searched for a line break.
  private var searched = 0
  /// Lines begun so far, the current one not counted.
  private var lineCount = 0
  /// The current line was reported as too long; its rest is dropped.
  private var isSkipping = false

  package init(limit: Int = 64 * 1024) {
    precondition(limit > 0, "A line framer needs room for at least one byte.")
    self.limit = limit
  }

  /// Everything that came has been taken out.
  package var isEmpty: Bool { start == buffer.count }

  /// A line has begun and not ended.
  package var isInLine: Bool { isSkipping || !isEmpty }

  /// Takes the next bytes of the stream; take out the lines before giving more.
  package mutating func append(_ bytes: Span<UInt8>) {
    if start > 0 {
      buffer.removeFirst(start)
      searched -= start
      start = 0
    }
    unsafe bytes.withUnsafeBufferPointer { unsafe buffer.append(contentsOf: $0) }
  }

  /// The next line, or `nil` until more bytes come.
  // Inlined for `settle`, whose start it shortens by a sixth of its instructions: destroying an
  // optional output anywhere else takes metadata that the runtime has to make first.
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
  /// Input whose last line break is missing ends in a remainder that may be whole; one that was
  /// cut off is never a whole JSON object.
  package mutating func finish() -> Remainder? {
    let rest = buffer[start...]
    let wasSkipping = isSkipping
    start = buffer.count
    searched = start
    isSkipping = false
    guard !wasSkipping, !rest.allSatisfy(Self.isBlank) else { return nil }
    lineCount += 1
    return Remainder(bytes: rest, number: lineCount)
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
