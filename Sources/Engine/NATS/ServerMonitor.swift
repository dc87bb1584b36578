// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import JSON
package import Operations

/// When the servers of NATS write to their disks: before they acknowledge, or up to some minutes
/// later.
///
/// An account of a client may not ask for that. A server says it at its monitoring address, in
/// `/varz`; nats-server before 2.10 neither says it nor can write before it acknowledges.
package enum DiskWrites: Hashable, Sendable {
  /// Each server writes before it acknowledges.
  case beforeAnswers
  /// A server that does not, with what it does in words.
  case later(server: String, how: String)
  /// It is not known, and why.
  case unknown(String)
}

/// Asks the servers of NATS, at their monitoring addresses, on a thread of its own.
///
/// It belongs to the loop's thread.
package final class ServerMonitor {
  package private(set) var writes = DiskWrites.unknown("cluster.monitor is not set")
  /// The servers were asked, and their answers are others than before.
  package var onChange: (() -> Void)?
  private let addresses: [String]
  private var asking: BackgroundWork<DiskWrites>?

  /// `addresses` are such as `http://10.0.0.1:8222`; without any, nothing is asked.
  ///
  /// - Throws: When the loop cannot be woken from another thread.
  package init(_ addresses: [String], loop: EventLoop) throws(OperationsError) {
    self.addresses = addresses
    if addresses.isEmpty { return }
    writes = .unknown("the servers were not asked yet")
    asking = try BackgroundWork(named: "monitor", loop: loop) { [weak self] in self?.finish($0) }
  }

  /// Asks all servers, unless they are being asked.
  package func ask() {
    guard let asking, !asking.isRunning else { return }
    let addresses = addresses
    // Without a thread the next time is soon enough.
    try? asking.begin { Self.writes(of: addresses) }
  }

  private func finish(_ found: DiskWrites) {
    guard found != writes else { return }
    writes = found
    onChange?()
  }

  /// What the servers answer; blocks for some seconds at each that does not.
  private static func writes(of addresses: [String]) -> DiskWrites {
    var unknown: DiskWrites?
    for address in addresses {
      guard let text = MonitorRequest.body(of: address, path: "/varz") else {
        unknown = unknown ?? .unknown("\(address) does not answer")
        continue
      }
      guard let values = try? JSONParser.parse(text), let version = values["version"]?.string else {
        unknown = unknown ?? .unknown("\(address) is no monitoring address of NATS")
        continue
      }
      let settings = values["jetstream"]?["config"]
      if settings?["sync_always"] == true { continue }
      let how =
        settings?["sync_interval"]?.double.map {
          "it writes to its disk up to \(Int($0 / 1e9)) s after it has acknowledged"
        } ?? "nats-server \(version) cannot write to its disk before it acknowledges"
      return .later(server: address, how: how)
    }
    return unknown ?? .beforeAnswers
  }
}

/// One request to a server of NATS by HTTP, without TLS.
enum MonitorRequest {
  /// The most bytes of an answer; `/varz` has some kilobytes.
  private static let limit = 1 << 20

  /// The body of a successful answer; `nil` for any other, and after three seconds without one.
  static func body(of address: String, path: String) -> String? {
    let rest = address.dropFirst("http://".count)
    guard let colon = rest.lastIndex(of: ":"), let port = Int(rest[rest.index(after: colon)...])
    else { return nil }
    let host = rest[..<colon].filter { $0 != "[" && $0 != "]" }
    guard let descriptor = BlockingSocket.connected(host, port, seconds: 3) else { return nil }
    defer { close(descriptor) }
    // The end of the connection is that of the answer.
    let request = Array("GET \(path) HTTP/1.0\r\nHost: \(rest)\r\n\r\n".utf8)
    guard unsafe send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count
    else { return nil }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 16_384)
    while bytes.count < limit {
      let count = unsafe recv(descriptor, &part, part.count, 0)
      guard count >= 0 else { return nil }
      if count == 0 { break }
      bytes += part[..<count]
    }
    let answer = String(decoding: bytes, as: UTF8.self)
    guard answer.hasPrefix("HTTP/1."), answer.dropFirst("HTTP/1.x ".count).hasPrefix("200"),
      let end = answer.firstRange(of: "\r\n\r\n")
    else { return nil }
    return String(answer[end.upperBound...])
  }
}
