// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CZLib

/// Compresses a body, part by part.
@safe package final class GzipWriter {
  /// On the heap, because the library keeps the address.
  private let stream: UnsafeMutablePointer<z_stream>
  /// A compromise of zlib for what is compressed at each request.
  private static let quickLevel: Int32 = 4
  /// What is compressed once may take longer.
  private static let bestLevel: Int32 = 9
  private static let blockSize = 16 * 1024

  package convenience init() { self.init(level: Self.quickLevel) }

  private init(level: Int32) {
    unsafe stream = .allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    let code = unsafe settle_gzip_start(stream, level)
    precondition(code == Z_OK, "zlib starts unless the memory is exhausted.")
  }

  deinit {
    unsafe deflateEnd(stream)
    unsafe stream.deinitialize(count: 1)
    unsafe stream.deallocate()
  }

  /// All of `bytes`, compressed as much as possible.
  package static func best(_ bytes: [UInt8]) -> [UInt8] { whole(bytes, level: bestLevel) }

  /// All of `bytes`, compressed in little time.
  package static func quick(_ bytes: [UInt8]) -> [UInt8] { whole(bytes, level: quickLevel) }

  private static func whole(_ bytes: [UInt8], level: Int32) -> [UInt8] {
    let writer = GzipWriter(level: level)
    var output: [UInt8] = []
    writer.append(bytes, isLast: true, to: &output)
    return output
  }

  /// Compresses the next part; some of it may come with a later one.
  package func append(_ bytes: [UInt8], isLast: Bool, to output: inout [UInt8]) {
    var block = [UInt8](repeating: 0, count: Self.blockSize)
    unsafe bytes.withUnsafeBufferPointer { input in
      // The library does not write to its input.
      unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
      unsafe stream.pointee.avail_in = UInt32(input.count)
      repeat {
        let count = unsafe block.withUnsafeMutableBufferPointer { room in
          unsafe stream.pointee.next_out = room.baseAddress
          unsafe stream.pointee.avail_out = UInt32(room.count)
          let code = unsafe deflate(stream, isLast ? Z_FINISH : Z_NO_FLUSH)
          precondition(code != Z_STREAM_ERROR, "The stream is used in order.")
          return room.count - Int(unsafe stream.pointee.avail_out)
        }
        output += block[..<count]
      } while unsafe stream.pointee.avail_out == 0
    }
  }
}

/// What a client says about compressed bodies.
package enum ContentCoding {
  /// Whether a client with these values of `Accept-Encoding` reads gzip.
  package static func acceptsGzip(_ values: [String]) -> Bool {
    var any: Bool?
    for entry in values.flatMap({ $0.split(separator: ",") }) {
      let parts = entry.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
      guard let name = parts.first?.lowercased() else { continue }
      // "q=0" and "q=0.0" mean: not this one.
      let isWanted = !parts.dropFirst().contains { part in
        part.lowercased().hasPrefix("q=") && part.dropFirst(2).allSatisfy { $0 == "0" || $0 == "." }
      }
      if name == "gzip" || name == "x-gzip" { return isWanted }
      if name == "*" { any = isWanted }
    }
    return any ?? false
  }
}
