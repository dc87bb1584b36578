// Settle
// SPDX-License-Identifier: Apache-2.0

/// What the help says.
enum KeyHelp {
  static let lines: [(keys: String, meaning: String)] = [
    ("Up Down, j k", "choose a property; PgUp PgDn, Home End too"),
    ("Right +, Left -", "one step more, one step less"),
    ("] [, Shift", "ten steps"),
    ("0-9 . Enter", "type a number and set it; Esc leaves"),
    ("Space, Enter", "switch, next word, or do the action"),
    ("f, F", "send now what waits: this one, all"),
    ("c", "cancel what waits"),
    ("!", "urgent: stop, or whatever leaves at once here"),
    ("/", "filter by name or pattern; Esc shows all"),
    ("q, Ctrl-C", "quit; what was asked goes on"),
    ("", ""),
    ("bar", "the value leaves when it is empty"),
    ("sent", "the broker has it"),
    ("confirmed", "the device shows it"),
    ("47 > 1", "47 changes became one command"),
  ]
}
