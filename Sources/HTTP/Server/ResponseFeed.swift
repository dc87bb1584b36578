// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CMicroHTTPD

/// The source from which the library reads a streamed response.
final class ResponseFeed {
  private let stream: any ResponseStream
  private weak var exchange: HTTPExchange?

  init(stream: any ResponseStream, exchange: HTTPExchange) {
    self.stream = stream
    self.exchange = exchange
  }

  /// Bytes that did not fit.
  private var rest: ArraySlice<UInt8> = []

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
      switch stream.next(buffer.count) {
      case .bytes(let bytes): rest = bytes[...]
      case .wait: return exchange.pause() ? 0 : settle_http_end_with_error
      case .end: return settle_http_end_of_stream
      case .abort: return settle_http_end_with_error
      }
    }
    let part = rest.prefix(buffer.count)
    unsafe buffer.copyBytes(from: part)
    rest = rest.dropFirst(part.count)
    return part.count
  }
}
