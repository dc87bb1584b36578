// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker

/// The response to one call of `curl`.
struct Answer {
  let status: Int
  /// Names in lower case.
  let headers: [String: String]
  let text: String

  /// The body as JSON; `null` if it is none.
  var json: JSONValue { (try? JSONParser.parse(text)) ?? .null }

  /// Each line of the body as JSON.
  var lines: [JSONValue] {
    text.split(separator: "\n").map { (try? JSONParser.parse(String($0))) ?? .null }
  }
}

/// Calls a server with the program `curl`, over TCP.
struct Curl {
  let port: Int

  /// Waits for the answer; `arguments` go before the address.
  func callAsFunction(_ path: String, _ arguments: String...) throws -> Answer {
    try start(path, arguments).answer()
  }

  /// Sends JSON with a method; `arguments` go before the address.
  func send(
    _ method: String,
    _ path: String,
    _ body: String,
    _ arguments: String...
  ) throws -> Answer {
    try start(path, ["-X", method, "--json", body] + arguments).answer()
  }

  /// Starts a call whose answer comes later.
  func start(_ path: String, _ arguments: [String]) throws -> Call {
    try Call(
      ["curl", "-sS", "-i", "-g", "--max-time", "600"] + arguments
        + ["http://127.0.0.1:\(port)\(path)"]
    )
  }

  /// A call under way.
  final class Call {
    private let process: SpawnedProcess
    private let reader: LineReader

    fileprivate init(_ arguments: [String]) throws {
      reader = try LineReader()
      process = try SpawnedProcess(
        arguments: arguments,
        output: .descriptor(reader.writer),
        errors: .descriptor(reader.writer)
      )
      reader.closeWriter()
    }

    deinit {
      process.signal(SIGKILL)
      process.wait(milliseconds: 5000)
    }

    /// Waits for a line that contains `text`, while the call goes on.
    func waitForLine(
      containing text: String,
      within limit: Duration = .patience
    ) -> String? {
      reader.waitFor(within: limit) { lines in lines.first { $0.contains(text) } }
    }

    /// The lines so far.
    var lines: [String] {
      reader.readAvailable()
      return reader.lines
    }

    /// Waits for the end of the answer.
    func answer() throws -> Answer {
      _ = reader.waitFor(within: .patience) { _ in nil as Bool? }
      var lines = reader.lines + [reader.unfinished]
      // What came before the answer, such as 100 Continue, is passed over.
      while lines.first?.contains(" 100 ") == true, let end = lines.firstIndex(of: "\r") {
        lines.removeFirst(end + 1)
      }
      guard let first = lines.first,
        let status = Int(first.split(separator: " ").dropFirst().first ?? ""),
        let end = lines.firstIndex(of: "\r")
      else { throw GatewayProcess.Failure(description: "no answer: \(lines)") }
      var headers: [String: String] = [:]
      for line in lines[1..<end] {
        let parts = line.split(separator: ":", maxSplits: 1)
        headers[parts[0].lowercased()] =
          parts.count > 1 ? String(parts[1].drop { $0 == " " }).filter { $0 != "\r" } : ""
      }
      return Answer(
        status: status,
        headers: headers,
        text: lines[(end + 1)...].joined(separator: "\n")
      )
    }
  }
}

extension Bench {
  /// A bench whose gateway is connected and serves HTTP, and a way to call it.
  ///
  /// It listens on a port of the kernel's choice, and on the socket `h.sock` in the bench's folder.
  static func serving(
    devices: String,
    http: String = "",
    settings: String = "",
    options: TestBroker.Options = .init()
  ) throws -> (bench: Bench, curl: Curl) {
    let bench = try Bench.running(
      devices: devices,
      settings: "http: {listen: [\"127.0.0.1:0\", \"unix:h.sock\"]\(http)}\n\(settings)",
      options: options
    )
    return (bench, Curl(port: try bench.running().httpPort()))
  }

  /// A raw connection to the HTTP socket.
  func rawHTTP() throws -> ControlClient { try ControlClient(folder + "/h.sock") }
}
