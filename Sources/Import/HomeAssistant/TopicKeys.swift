// Settle
// SPDX-License-Identifier: Apache-2.0

/// The configuration keys of a property's topics and templates.
struct TopicKeys {
  var command = "command_topic"
  var commandTemplate: String? = "command_template"
  var state = "state_topic"
  var stateTemplate: String? = "value_template"
  /// The names of the value in templates.
  var variables: Set<String> = ["value"]

  init() {}

  /// The keys that start with a prefix, such as `PREFIX_command_topic`.
  init(_ prefix: String, stateTemplate suffix: String = "value_template") {
    command = "\(prefix)_command_topic"
    commandTemplate = "\(prefix)_command_template"
    state = "\(prefix)_state_topic"
    stateTemplate = "\(prefix)_\(suffix)"
  }
}
