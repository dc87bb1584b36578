// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import JSON
import JSONParsing
import NATS

/// Making the streams, and comparing the cluster's own record with the settings.
extension ClusterEngine {
  /// The version of what is stored.
  static let version: Int64 = 1
  /// For how long the engine remembers what a message follows, in nanoseconds: longer than one is under
  /// way, and short enough to be read quickly when a server starts.
  private static let memory: Int64 = 30_000_000_000
  /// A stream has this name and other settings.
  private static let otherSettings = 10058
  /// There are fewer servers than replicas, or one server only.
  private static let tooFewServers: Set<Int> = [10005, 10074]
  private static let noJetStream: Set<Int> = [503, 10039, 10076]

  /// Makes what is missing, one step after the other.
  func prepare() {
    guard connection.isConnected, !isReady else { return }
    let records = stream(settings.records, settings.record(">"), newestOnly: true)
    let log = stream(settings.log, "\(settings.prefix).log.*", newestOnly: false)
    create(settings.records, records) { [unowned self] in
      create(settings.log, log) { [unowned self] in writeClusterRecord() }
    }
  }

  private func stream(_ name: String, _ subject: String, newestOnly: Bool) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("name", .string(name)), .init("subjects", [.string(subject)]),
      .init("storage", "file"), .init("retention", "limits"),
      .init("discard", newestOnly ? "old" : "new"),
      .init("num_replicas", .integer(Int64(settings.replicas))), .init("max_consumers", -1),
      .init("max_msgs", -1), .init("max_bytes", -1), .init("max_age", 0),
      .init("duplicate_window", .integer(Self.memory)),
    ]
    if newestOnly { members.append(.init("max_msgs_per_subject", 1)) }
    return .object(members)
  }

  private func create(_ name: String, _ body: JSONValue, _ next: @escaping () -> Void) {
    api.call("STREAM.CREATE.\(name)", body) { [unowned self] result in
      switch result {
      case .success: next()
      case .failure(let problem) where problem.code == Self.otherSettings:
        refuse("the engine has a stream \(name) with other settings: was cluster.replicas changed?")
      case .failure(let problem) where Self.tooFewServers.contains(problem.code):
        retry(
          "the engine has fewer servers than cluster.replicas, which is \(settings.replicas):"
            + " \(problem.text)"
        )
      case .failure(let problem) where Self.noJetStream.contains(problem.code):
        retry("the server \(connection.server) has no JetStream, or no leader: \(problem.text)")
      case .failure(let problem): retry(problem.text)
      }
    }
  }

  private func writeClusterRecord() {
    let record: JSONValue = .object([
      "version": .integer(Self.version), "partitions": .integer(Int64(settings.partitions)),
      "hash": "fnv1a-64",
    ])
    let subject = settings.record("cluster")
    api.publish(JSONWriter.bytes(record), to: subject, after: .none) { [unowned self] outcome in
      switch outcome {
      case .stored: becomeReady()
      case .conflict: compareClusterRecord(subject)
      case .unknown: retry(StreamAPI.Problem.noAnswer.text)
      }
    }
  }

  private func compareClusterRecord(_ subject: String) {
    api.last(of: subject, in: settings.records) { [unowned self] result in
      guard case .success(let found) = result, let found,
        let json = try? JSONParser.parse(found.bytes.span)
      else { return retry(StreamAPI.Problem.noAnswer.text) }
      guard case .integer(Self.version)? = json["version"] else {
        let version = json["version"].map { JSONWriter.text($0) } ?? "none"
        return refuse(
          "the cluster \(settings.cluster) stores version \(version), this program \(Self.version)"
        )
      }
      guard case .integer(let partitions)? = json["partitions"],
        partitions == Int64(settings.partitions)
      else {
        let partitions = json["partitions"].map { JSONWriter.text($0) } ?? "none"
        return refuse(
          "the cluster \(settings.cluster) has \(partitions) partitions, the settings say"
            + " \(settings.partitions): correct cluster.partitions"
        )
      }
      becomeReady()
    }
  }

  private func refuse(_ text: String) { onRefusal?(EngineRefusal(text)) }
}
