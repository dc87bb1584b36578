// Settle
// SPDX-License-Identifier: Apache-2.0

import HTTP

/// A document that is written part by part, so that a long one does not stop the gateway.
protocol PartialDocument {
  /// Appends the next part, which takes well below a millisecond; `false` after the last one.
  mutating func appendPart(to bytes: inout [UInt8]) -> Bool
}

/// Sends a long document: what the client does not read is not written.
final class DocumentStream: ResponseStream {
  private var document: any PartialDocument
  private var isComplete = false
  /// What was written before the first call for it.
  private var beginning: [UInt8] = []
  private var writer: GzipWriter?
  /// What is sent in one piece, and written at once.
  private static let shortSize = 16 * 1024
  /// Bodies below this fit one packet as they are.
  static let compressedSize = 1024

  /// Writes the beginning; `isCompressed` says what the client accepts.
  init(_ document: any PartialDocument, isCompressed: Bool) {
    self.document = document
    let plain = part(Self.shortSize)
    guard isCompressed, plain.count >= Self.compressedSize else {
      beginning = plain
      return
    }
    let writer = GzipWriter()
    self.writer = writer
    writer.append(plain, isLast: isComplete, to: &beginning)
  }

  /// Whether the body is compressed.
  var isCompressed: Bool { writer != nil }

  /// The body of a response: bytes if the document is short.
  var body: HTTPResponse.Body { isComplete ? .bytes(beginning) : .stream(self) }

  func next(_ room: Int) -> ResponsePiece {
    let bytes = beginning.isEmpty ? write(room) : beginning
    beginning = []
    return bytes.isEmpty ? .end : .bytes(bytes)
  }

  private func write(_ size: Int) -> [UInt8] {
    guard let writer else { return part(size) }
    var bytes: [UInt8] = []
    // The writer may keep what it gets until it has more.
    while bytes.isEmpty, !isComplete {
      let plain = part(size)
      writer.append(plain, isLast: isComplete, to: &bytes)
    }
    return bytes
  }

  private func part(_ size: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < size, !isComplete { isComplete = !document.appendPart(to: &bytes) }
    return bytes
  }
}
