// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import TestBroker
import Testing

/// HTTP while the journal cannot be written.
@Suite(.blocking) struct HTTPJournalScenarios {
  private static let patient = "{delay: 60s, max_wait: none}"

  @Test func `a disk that cannot be written shows in readiness and metrics until it can again`()
    throws
  {
    let (bench, curl) = try serving(commit: "10ms")
    #expect(try curl("/readyz").status == 200)
    #expect(try metric("settle_journal_durable", curl) == 1)
    #expect(try curl.send("PUT", "/v1/devices/dev0/level", "1").status == 202)

    try bench.running().limitFiles(to: 0)
    let first = try curl.send("PUT", "/v1/devices/dev1/level", "1")
    #expect(first.status == 202)
    #expect(first.json["reason"]?.string?.hasPrefix("held in memory only") == true)

    let readiness = try curl("/readyz")
    #expect(readiness.status == 503)
    #expect(readiness.json["code"] == "not_durable")
    #expect(readiness.json["detail"]?.string?.contains("the journal cannot be written") == true)
    #expect(readiness.headers["retry-after"] == "5")
    #expect(try curl("/healthz").status == 200)
    #expect(try metric("settle_journal_durable", curl) == 0)
    let refused = try curl.send("PUT", "/v1/devices/dev0/level", "2")
    #expect(refused.status == 503)
    #expect(refused.json["code"] == "not_durable")
    #expect(refused.json["key"] == "dev0/level")
    #expect(refused.headers["retry-after"] == "5")
    #expect(try metric(#"settle_rejected_total{device="dev0"}"#, curl) == 1)

    // The attempts to rebuild it fail for their own reason, which is published.
    #expect(try bench.running().waitForLine(containing: #"reason="sqlite3_exec: "#) != nil)
    try bench.running().limitFiles(to: nil)
    #expect(try bench.running().waitForLine(containing: "Journal recovered") != nil)
    let recovered = try curl("/readyz")
    let log = try bench.running().log()
    #expect(recovered.status == 200, "\(recovered.text) \(log)")
    #expect(!log.contains("No connection to the broker"))
    #expect(try metric("settle_journal_durable", curl) == 1)
    #expect(try curl.send("PUT", "/v1/devices/dev0/level", "3").status == 202)
  }

  @Test(arguments: ["", "?wait=sent"])
  func `a change whose commit fails over an older value is refused like those after it`(
    query: String
  ) throws {
    let (bench, curl) = try serving(commit: "500ms")
    #expect(try curl.send("PUT", "/v1/devices/dev0/level", "1").status == 202)
    try bench.running().limitFiles(to: 0)

    // Its answer waits for the next commit.
    let refused = try curl.send("PUT", "/v1/devices/dev0/level\(query)", "2")

    #expect(refused.status == 503)
    #expect(refused.json["code"] == "not_durable")
    #expect(refused.json["detail"]?.string?.contains("would send an older value again") == true)
    #expect(try metric(#"settle_rejected_total{device="dev0"}"#, curl) == 1)
  }

  private func serving(commit: String) throws -> (bench: Bench, curl: Curl) {
    try Bench.serving(
      devices: DeviceText.levels(2, policy: Self.patient),
      settings: "journal: {path: journal.db, commit: \(commit)}"
    )
  }

  private func metric(_ name: String, _ curl: Curl) throws -> Double? {
    let families = try PrometheusText.parse(try curl("/metrics").text)
    return families[String(name.prefix { $0 != "{" })]?.samples[name]
  }
}
