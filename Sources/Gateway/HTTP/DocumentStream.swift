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
  /// What is sent in one piece, and written at once.
  private static let shortSize = 16 * 1024

  private init(_ document: any PartialDocument) { self.document = document }

  /// The body of a response: bytes if the document is short.
  static func body(_ document: any PartialDocument) -> HTTPResponse.Body {
    let stream = DocumentStream(document)
    stream.beginning = stream.write(shortSize)
    return stream.isComplete ? .bytes(stream.beginning) : .stream(stream)
  }

  func next(_ room: Int) -> ResponsePiece {
    let bytes = beginning.isEmpty ? write(room) : beginning
    beginning = []
    return bytes.isEmpty ? .end : .bytes(bytes)
  }

  private func write(_ size: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < size, !isComplete { isComplete = !document.appendPart(to: &bytes) }
    return bytes
  }
}
