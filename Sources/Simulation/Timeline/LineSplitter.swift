// Settle
// SPDX-License-Identifier: Apache-2.0

/// What takes the lines that a ``LineSplitter`` cuts.
package protocol LineSink: ~Copyable {
  /// Takes one line; `number` counts from one.
  mutating func take(_ line: borrowing LineSplitter.Line, number: Int)
}

/// Cuts a stream of bytes into lines, keeping only the line that is not complete yet.
///
/// A line ends at LF; a CR before it is dropped. Lines of blanks alone are counted and not handed
/// out. What a line has beyond ``limit`` bytes is not kept.
package struct LineSplitter: ~Copyable {
  /// One line of the stream.
  package enum Line: ~Escapable {
    case text(Span<UInt8>)
    /// Longer than the limit.
    case tooLong
  }

  /// In bytes.
  package let limit: Int
  /// The number of the line handed out last, counted from one.
  package private(set) var number = 0

  private var partial: [UInt8] = []
  private var isOverlong = false

  package init(limit: Int) { self.limit = limit }

  /// Hands out the lines that `bytes` completes.
  package mutating func append(
    _ bytes: Span<UInt8>,
    to sink: inout some LineSink & ~Copyable
  ) {
    var start = 0
    var position = 0
    while position < bytes.count {
      if bytes[position] == UInt8(ascii: "\n") {
        complete(bytes.extracting(start..<position), to: &sink)
        start = position + 1
      }
      position += 1
    }
    keep(bytes.extracting(start..<bytes.count))
  }

  /// Hands out the last line if it had no line break.
  package mutating func finish(to sink: inout some LineSink & ~Copyable) {
    guard isOverlong || !partial.isEmpty else { return }
    let nothing: [UInt8] = []
    complete(nothing.span, to: &sink)
  }

  private mutating func complete(
    _ rest: Span<UInt8>,
    to sink: inout some LineSink & ~Copyable
  ) {
    number += 1
    guard !isOverlong, partial.count + rest.count <= limit else {
      isOverlong = false
      partial.removeAll(keepingCapacity: true)
      sink.take(.tooLong, number: number)
      return
    }
    if partial.isEmpty {
      handOut(rest, to: &sink)
    } else {
      for position in rest.indices { partial.append(rest[position]) }
      handOut(partial.span, to: &sink)
      partial.removeAll(keepingCapacity: true)
    }
  }

  private func handOut(_ line: Span<UInt8>, to sink: inout some LineSink & ~Copyable) {
    var end = line.count
    if end > 0, line[end - 1] == UInt8(ascii: "\r") { end -= 1 }
    let isBlank = (0..<end).allSatisfy { line[$0] == 0x20 || line[$0] == 0x09 }
    if !isBlank { sink.take(.text(line.extracting(0..<end)), number: number) }
  }

  private mutating func keep(_ rest: Span<UInt8>) {
    guard !isOverlong, partial.count + rest.count <= limit else {
      isOverlong = true
      partial.removeAll(keepingCapacity: true)
      return
    }
    for position in rest.indices { partial.append(rest[position]) }
  }
}
