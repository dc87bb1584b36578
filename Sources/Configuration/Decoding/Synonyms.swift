// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// Words of other programs for keys and types of the files.
enum Synonyms {
  /// The allowed word that `word` probably means: a synonym, or the most similar one.
  static func nearest(to word: String, in allowed: [String]) -> String? {
    if let meant = meanings[word.lowercased()]?.first(where: { allowed.contains($0) }) {
      return meant
    }
    return Suggestion.nearest(to: word, in: allowed)
  }

  private static let meanings: [String: [String]] = [
    "float": ["number"], "double": ["number"], "decimal": ["number"], "real": ["number"],
    "int": ["integer"], "long": ["integer"],
    "bool": ["boolean"], "binary": ["boolean"], "switch": ["boolean"],
    "string": ["text"], "str": ["text"],
    "enum": ["choice"], "select": ["choice"], "option": ["choice"],
    "rgb": ["color"], "colour": ["color"],
    "button": ["action"], "trigger": ["action"],
    "host": ["url"], "hostname": ["url"], "port": ["url"], "server": ["url"], "broker": ["url"],
    "address": ["url"], "tls": ["url"], "ssl": ["url"],
    "user": ["username"], "login": ["username"], "password": ["password_file"],
    "pass": ["password_file"], "token": ["token_file"],
    "min": ["range"], "max": ["range"], "minimum": ["range"], "maximum": ["range"],
    "enum_values": ["values"], "options": ["values"], "choices": ["values"],
    "label": ["name"], "title": ["name"], "friendly_name": ["name"],
    "debounce": ["delay", "policy"], "timeout": ["within", "ttl"],
  ]
}
