// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Values

struct StepCommand: ChangeCommand {
  static let name = "step"
  static let summary = "Add to a number; rapid steps add up and are sent as one value."
  static let discussion = """
    A step counts from the pending value, else from the value in flight, else from what the device \
    reported last, and stays within the property's range. N% is that part of the range, in whole \
    steps; where the unit is %, it is that number.
    """
  static let examples = [
    Example("settle step desk-lamp/brightness +10", "Increase the brightness by ten."),
    Example("settle step desk-lamp/brightness -10% --wait=settled", "A tenth of the range darker."),
    Example(
      "settle step boiler/target_temperature -0.5 --wait",
      "Lower the set-point by half a degree, and wait."
    ),
  ]
  static let parameters = changeParameters(
    [
      .argument(
        "n",
        { $0.amount = $1 },
        help: "The amount to add: 5, +5, -0.5, or +10% of the range."
      )
    ],
    keys: .keysOf("step")
  )

  var key = ""
  var amount = ""
  var options = ChangeOptions()
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    if let percentage = StepAmount(percentage: amount) {
      return try performOne(.step(percentage))
    }
    let number: Double
    do throws(ArgumentValueError) {
      number = try Double(argument: amount)
    } catch {
      Terminal.complain("N \(error.message)")
      return .badInput
    }
    return try performOne(.step(.number(number)))
  }
}
