// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CMicroHTTPD

/// The source from which the library reads a response in blocks.
final class ResponseFeed {
  /// The source of what follows ``rest``; `nil` if nothing does.
  private let stream: (any ResponseStream)?
  private weak var exchange: HTTPExchange?
  /// Bytes that have not been read.
  private var rest: ArraySlice<UInt8> = []

  init(_ stream: any ResponseStream, exchange: HTTPExchange) {
    self.stream = stream
    self.exchange = exchange
  }

  init(_ bytes: [UInt8], exchange: HTTPExchange) {
    stream = nil
    rest = bytes[...]
    self.exchange = exchange
  }

  /// Writes at most `room` bytes; the library calls again after sending them.
  static func fill(
    _ context: UnsafeMutableRawPointer?,
    _ buffer: UnsafeMutablePointer<CChar>?,
    _ room: Int
  ) -> Int {
    guard let context = unsafe context, let buffer = unsafe buffer else {
      return settle_http_end_with_error
    }
    let feed = unsafe Unmanaged<ResponseFeed>.fromOpaque(context).takeUnretainedValue()
    return unsafe feed.fill(UnsafeMutableRawBufferPointer(start: buffer, count: room))
  }

  private func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let exchange, !exchange.isLost else { return settle_http_end_with_error }
    if rest.isEmpty {
      switch stream?.next(buffer.count) ?? .end {
      case .bytes(let bytes): rest = bytes[...]
      case .wait: return exchange.pause() ? 0 : settle_http_end_with_error
      case .end: return settle_http_end_of_stream
      case .abort: return settle_http_end_with_error
      }
    }
    let part = rest.prefix(buffer.count)
    unsafe buffer.copyBytes(from: part)
    rest = rest.dropFirst(part.count)
    exchange.waitForReader()
    return part.count
  }
}
