// Settle
// SPDX-License-Identifier: Apache-2.0

/// The configuration keys of a property's topics and templates, and what these mean.
struct TopicKeys {
  var command = "command_topic"
  var commandTemplate: String? = "command_template"
  var state = "state_topic"
  var stateTemplate: String? = "value_template"
  /// The variables of the command template for a value.
  var variables: (TemplateValue) -> [String: TemplateValue] = { ["value": $0] }
  /// The variables of the state template besides the report.
  var stateVariables: [String: TemplateValue] = [:]
  /// Whether Home Assistant converts values without a command template too.
  var isConverted = false
  /// What the results of the state template mean, if not the words of the commands.
  var meaning: StateMeaning?

  init() {}

  /// The keys that start with a prefix, such as `PREFIX_command_topic`.
  init(_ prefix: String, stateTemplate suffix: String = "value_template") {
    command = "\(prefix)_command_topic"
    commandTemplate = "\(prefix)_command_template"
    state = "\(prefix)_state_topic"
    stateTemplate = "\(prefix)_\(suffix)"
  }
}
