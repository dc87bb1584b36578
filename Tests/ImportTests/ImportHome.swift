// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
@testable import Import
import Operations
import TestBroker
import Testing

/// A broker with announcements, a folder, and the built programs.
///
/// The broker and the folder are removed with this object.
final class ImportHome {
  let broker: TestBroker
  let folder: String
  let client: RecordingSubscriber
  private var gateway: SpawnedProcess?
  private var count = 0

  init(_ announcements: [Announcement], options: TestBroker.Options = .init()) throws {
    broker = try TestBroker(options: options)
    try broker.start()
    folder = try TemporaryFolder.make("settle-import")
    client = try RecordingSubscriber(port: broker.port)
    for announcement in announcements {
      try #require(client.publish(announcement.topic, announcement.payload, retain: true))
    }
    try useBrokers([url])
  }

  /// The URL of the broker.
  var url: String { "mqtt://127.0.0.1:\(broker.port)" }

  /// Writes the settings.
  func useBrokers(_ urls: [String]) throws {
    let list = urls.map { "\"\($0)\"" }.joined(separator: ", ")
    let settings = """
      mqtt: {url: \(urls.count == 1 ? list : "[\(list)]")}
      socket: \(folder)/s.sock
      devices: devices

      """
    try TextFile.write(settings, to: "\(folder)/settle.yaml")
  }

  deinit {
    gateway?.signal(SIGKILL)
    gateway?.wait(milliseconds: 5000)
    broker.stop()
    TemporaryFolder.remove("\(folder)/devices")
    TemporaryFolder.remove(folder)
  }

  /// Runs `settled` to its end.
  func settled(_ arguments: [String], needsSettings: Bool = true) throws -> ProgramRun {
    let configured = needsSettings ? ["--config", "\(folder)/settle.yaml"] : []
    return try run([BuiltProgram.path("settled")] + arguments + configured)
  }

  /// Runs `settled` to its end in a folder of this one, where it finds the gateway, if one runs.
  func settledBeside(
    _ arguments: [String],
    in inner: String = ".",
    variables: [String] = []
  ) throws -> ProgramRun {
    let script = "cd \"$1\" && shift && exec env \"$@\""
    return try run(
      ["/bin/sh", "-c", script, "sh", "\(folder)/\(inner)", "-u", "SETTLE_CONFIG"] + variables
        + ["SETTLE_SOCKET=\(folder)/s.sock", BuiltProgram.path("settled")] + arguments
    )
  }

  /// Runs a program to its end.
  func run(_ arguments: [String]) throws -> ProgramRun {
    count += 1
    return try ProgramRun(arguments, in: folder, number: count)
  }

  /// Makes a folder in this one.
  func makeFolder(_ name: String) throws {
    try #require(unsafe mkdir("\(folder)/\(name)", 0o700) == 0)
  }

  /// Starts the gateway and returns when it is online.
  ///
  /// Without privileges the modes of files count for root too.
  func startGateway(
    _ arguments: [String] = [],
    environment: [String: String] = [:],
    withoutPrivileges: Bool = false
  ) throws {
    let isDenied = withoutPrivileges && geteuid() == 0
    let prefix = isDenied ? ["/usr/bin/setpriv", "--bounding-set", "-all", "--"] : []
    let before = client.messages.count
    gateway = try SpawnedProcess(
      arguments: prefix + [
        BuiltProgram.path("settled"), "run", "--config", "\(folder)/settle.yaml",
      ] + arguments,
      environment: Environment.all.merging(environment) { $1 },
      output: .discarded,
      errors: .file("\(folder)/gateway-errors")
    )
    let isOnline = client.waitFor { messages in
      messages.dropFirst(before).contains { $0.topic == "settle/status" && $0.text == "online" }
    }
    if !isOnline { Issue.record("\(TextFile.read("\(folder)/gateway-errors") ?? "no gateway")") }
  }

  /// Stops the gateway until it is killed.
  func pauseGateway() { gateway?.signal(SIGSTOP) }

  /// Ends the gateway, and returns when it has ended.
  func stopGateway(by signal: Int32 = SIGTERM) {
    gateway?.signal(signal)
    gateway?.wait()
    gateway = nil
  }

  /// The text of a file in the folder of devices.
  func device(file name: String) -> String { TextFile.read("\(folder)/devices/\(name)") ?? "" }

  /// The names in the folder, without output files of programs.
  func names(in inner: String = "") -> [String] {
    guard let directory = unsafe opendir("\(folder)/\(inner)") else { return [] }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
      let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      let isLeft = name.hasPrefix("output-") || name.hasPrefix("errors-")
      if name != ".", name != "..", !isLeft { names.append(name) }
    }
    return names.sorted()
  }
}
