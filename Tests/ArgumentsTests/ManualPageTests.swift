// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Testing

@Suite struct ManualPageTests {
  private struct Turn: Command {
    static let name = "turn"
    static let summary = "Turn a 'knob'."
    static let discussion = "First\nline.\n\n.dotted C:\\path ~ ^"
    static let examples = [Example("knob turn -5", "Leftwards.")]
    static let parameters: [Parameter<Self>] = [
      .argument("amount", { $0.amount = $1 }, help: "How far."),
      .option("speed", { $0.speed = $1 }, value: "X", help: "How fast."),
    ]
    var amount = ""
    var speed: String?
  }

  private let program = Program(
    name: "knob",
    version: "1.2",
    summary: "Knobs.",
    commands: [CommandEntry(Turn.self, section: "MOVE") { _ in .done }]
  )

  @Test func `a command's page has the content of its table, escaped for roff`() throws {
    let entry = try #require(program.commands.first)
    #expect(
      ManualPage.text(of: entry, in: program) == """
        .TH KNOB\\-TURN 1 "" "knob 1.2"
        .SH NAME
        knob\\-turn \\- Turn a \\(aqknob\\(aq
        .SH SYNOPSIS
        \\fBknob turn\\fR [\\-\\-speed X] AMOUNT
        .SH DESCRIPTION
        First line.
        .PP
        \\&.dotted C:\\epath \\(ti \\(ha
        .SH ARGUMENTS
        .TP
        \\fBAMOUNT\\fR
        How far.
        .SH OPTIONS
        .TP
        \\fB\\-\\-speed X\\fR
        How fast.
        .TP
        \\fB\\-h, \\-\\-help\\fR
        Show this.
        .SH EXAMPLES
        .PP
        Leftwards.
        .PP
        .RS 4
        .EX
        knob turn \\-5
        .EE
        .RE
        .SH SEE ALSO
        \\fBknob\\fR(1)

        """
    )
  }

  @Test func `the program's page lists its commands and exit codes`() {
    let page = ManualPage.text(of: program, exitCodes: [(.usage, "Wrong.")])
    #expect(page.contains(".SH MOVE COMMANDS\n.TP\n\\fBturn\\fR\nTurn a \\(aqknob\\(aq.\n"))
    #expect(page.contains(".SH EXIT STATUS\n.TP\n\\fB64\\fR\nWrong.\n"))
    #expect(page.hasSuffix(".SH SEE ALSO\n\\fBknob\\-turn\\fR(1)\n"))
  }
}
