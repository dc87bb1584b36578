// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Values
import JSON

struct SetCommand: ChangeCommand {
  static let name = "set"
  static let summary = "Set a property; only the last of several rapid changes is sent."
  static let discussion = """
    VALUE is a number, true, false, a color, or otherwise a text. A text is sent as \
    it stands, with its digits and blanks, unless it is one in quotes of JSON. An object with \
    "value" is that value; an id and a source beside it are those of the change. Negative numbers \
    are values, not options; a number with a plus sign is refused, because it means a step. The \
    gateway converts VALUE to the property's type, and refuses it with the allowed range if that \
    is not possible. 50% is half of the range; where the unit is %, it is that number. A color is \
    a word such as red, or '#ff8800'.

    With a DEVICE and several NAME=VALUE the properties change at one instant, all of them or \
    none. Members that the device sends along, such as transition, are named in the same way.

    Without --wait the command exits as soon as the gateway has accepted the change, and prints \
    nothing to a pipe. With --wait it exits with 0 when the value was sent or confirmed, or did \
    not need to be sent; with 1 when the command failed, expired, was superseded or cancelled; \
    with 65 when the change was refused.
    """
  static let examples = [
    Example("settle set desk-lamp/brightness 40", "Dim the lamp to 40."),
    Example("settle set desk-lamp/brightness 50%", "Half of its range."),
    Example(
      "settle set desk-lamp brightness=40 power=on transition=2",
      "Two properties at one instant, and how long the lamp takes."
    ),
    Example(
      "settle set boiler/target_temperature 21.5 --wait",
      "Wait until the boiler reports it."
    ),
    Example("settle set desk-lamp/power off --now", "Switch it off without the quiet period."),
    Example("settle set desk-lamp/color red", "A color; '#ff8800' is one, too."),
    Example(
      "settle set desk-lamp/brightness 40 --dry-run",
      "Print the message that would be sent, and send nothing."
    ),
    Example(
      "settle set boiler/mode off --ttl 1h",
      "Keep the value for an hour while the boiler is offline."
    ),
  ]
  static let parameters = changeParameters(
    [
      .argument(
        "value",
        { $0.value = $1 },
        completion: .values,
        help: "The value to set; NAME=VALUE after a device."
      ),
      .arguments(
        "name=value",
        { $0.others.append($1) },
        completion: .members,
        help: "Further properties of the device."
      ),
    ],
    keys: .keysOf("set"),
    keyHelp: "device/property, such as desk-lamp/brightness; or a device before NAME=VALUE."
  )

  var key = ""
  var value = ""
  var others: [String] = []
  var options = ChangeOptions()
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    var command = self
    guard !key.contains("/") else {
      guard let other = others.first else {
        guard let value = command.read(value, isMember: false) else { return .badInput }
        return try command.perform(.set(value))
      }
      Terminal.complain(
        #"unexpected argument "\#(other)"; several properties are set with a device: "#
          + "settle set DEVICE NAME=VALUE…"
      )
      return .usage
    }
    var members: [JSONValue.Member] = []
    for text in [value] + others {
      guard let sign = text.firstIndex(of: "="), sign != text.startIndex else {
        return try explainBareName(
          key,
          hint: "; several at once are set with NAME=VALUE, such as \(key) brightness=40"
        )
      }
      let name = String(text[..<sign])
      guard !members.contains(where: { $0.name == name }) else {
        Terminal.complain("\(name) is given twice")
        return .usage
      }
      let written = String(text[text.index(after: sign)...])
      guard let value = command.read(written, isMember: true) else { return .badInput }
      members.append(.init(name, value))
    }
    return try command.perform(.set(.object(members)))
  }

  /// Reads a value, and the id and source beside it where no option states them; `nil` after
  /// complaining about any other member.
  private mutating func read(_ text: String, isMember: Bool) -> JSONValue? {
    guard let members = ValueText.envelope(text) else {
      return ValueText.json(text, isMember: isMember)
    }
    for member in members where member.name != "value" {
      switch (member.name, member.value.string) {
      case ("id", let id?): options.id = options.id ?? id
      case ("source", let source?): options.source = options.source ?? source
      default:
        Terminal.complain(
          "expected an id or a source beside 'value', each a text; found '\(Excerpt.of(member.name))'"
        )
        return nil
      }
    }
    return members.first { $0.name == "value" }?.value
  }
}
