// Settle
// SPDX-License-Identifier: Apache-2.0

import HTTP
import JSON
import Operations

/// What the panel keeps for all screens: a JSON document that means nothing to the gateway.
///
/// It is kept in a file beside the journal; without a journal, or where the file cannot be written,
/// in memory, and each answer says so.
struct PanelDocument {
  /// The longest document, in bytes.
  static let limit = 64 << 10

  private(set) var bytes = Array("{}".utf8)
  /// Whether the file has it.
  private(set) var isStored: Bool
  private let file: JournalNeighbour?

  /// `journal` is the path of the journal's file.
  init(besideJournal journal: String?, log: Logger) {
    file = journal.map { JournalNeighbour("panel.json", besideJournal: $0) }
    isStored = file != nil
    guard let file, let known = file.read() else { return }
    guard known.count <= Self.limit, (try? JSONParser.parse(known.span)) != nil else {
      isStored = false
      log.warning("The panel's document is damaged and set aside", ["as": file.setAside()])
      return
    }
    bytes = known
  }

  /// Keeps another document.
  ///
  /// - Throws: If it is too long, or no JSON.
  mutating func replace(with new: [UInt8], log: Logger) throws(Problem) {
    guard new.count <= Self.limit else {
      throw Problem(
        413,
        "body_too_long",
        "the document has at most \(Self.limit) bytes; found \(new.count)"
      )
    }
    do throws(JSONParseError) {
      _ = try JSONParser.parse(new.span)
    } catch {
      throw Problem(400, "syntax", "not JSON: \(error.message) (column \(error.column))")
    }
    bytes = new
    guard let file else { return }
    isStored = file.write(new)
    if !isStored { log.warning("The panel's document cannot be written", ["path": file.path]) }
  }
}

extension HTTPSurface {
  /// Reads or replaces what the panel keeps.
  func servePanelDocument(_ exchange: HTTPExchange) throws(Problem) {
    try ChangeBody.checkQuery(exchange.request, allowed: [])
    if exchange.request.method == "PUT" {
      try panelDocument.replace(with: exchange.request.body, log: context.log)
      streams.panelDocumentChanged()
    }
    let kept = HTTPHeader("Settle-Kept", panelDocument.isStored ? "file" : "memory")
    let headers = [kept, HTTPHeader("Content-Type", "application/json")]
    answer(exchange, HTTPResponse(status: 200, headers: headers, body: .bytes(panelDocument.bytes)))
  }
}
