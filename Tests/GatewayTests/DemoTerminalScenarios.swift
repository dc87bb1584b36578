// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations
import TestBroker
import Testing

/// The demo in a terminal whose window is closed.
@Suite(.blocking) struct DemoTerminalScenarios {
  @Test func `a demo whose terminal is closed stops its broker`() throws {
    let terminal = try TmuxTerminal(columns: 120, rows: 40)
    try terminal.enter("\(BuiltProgram.path("settled")) demo --keep")
    let row = try terminal.waitForRow("a real mosquitto on 127.0.0.1:", "simulated devices")
    let text = row.split(separator: "127.0.0.1:").last?.prefix { $0.isNumber } ?? ""
    let port = try #require(Int(text))
    #expect(LoopbackPort.accepts(port))
    try terminal.hangUp()
    var wait = Wait()
    while LoopbackPort.accepts(port), wait.remaining() != nil {}
    #expect(!LoopbackPort.accepts(port))
  }
}
