// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control

struct SceneCommand: ChangeCommand {
  static let name = "scene"
  static let summary = "Set the values of a scene, all at one instant."
  static let discussion = """
    A scene is a named set of values in a device file. Each value is accepted or refused for \
    itself, and has an event of its own; the exit code is 0 if all went well.
    """
  static let examples = [
    Example("settle scene evening", "Set the scene."),
    Example("settle scene evening --wait", "Wait until every device has its value."),
    Example("settle scene evening --dry-run", "Print the messages, and send nothing."),
  ]
  static let parameters = changeParameters(
    [],
    keys: .keysOf("scene"),
    keyName: "name",
    keyHelp: "The name of the scene, such as evening."
  )

  var key = ""
  var options = ChangeOptions()
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    guard options.wait != .settled else {
      Terminal.complain("scene: --wait is sent or confirmed; settled is for one property")
      return .usage
    }
    return try perform(.scene)
  }
}
