// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments

struct ManualCommand: Command {
  static let name = "manual"
  static let summary = "Print the manual page of settle or of one of its commands."
  static let discussion = """
    The page is for man(1): "make install" puts all of them where man finds them.
    """
  static let examples = [
    Example("settle manual set | man -l -", "Read a page without installing it."),
    Example("settle manual > settle.1", "Write the page to a file."),
  ]
  static let parameters: [Parameter<Self>] = [
    .argument(
      "command",
      { $0.command = $1 },
      isOptional: true,
      completion: .commands,
      help: "The command; default: settle itself."
    )
  ]

  var command = ""
}
