// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments

struct ManualCommand: Command {
  static let name = "manual"
  static let summary = "Show the manual page of settle or of one of its commands."
  static let discussion = """
    On a terminal man(1) shows the page; in a pipe or a file it is the source for man. "make \
    install" puts all pages where man finds them.
    """
  static let examples = [
    Example("settle manual set", "Read a page without installing it."),
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
