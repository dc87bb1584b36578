// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration

/// `settle schema`: the JSON Schemas of both files, for editors.
struct SchemaCommand: DaemonCommand {
  /// Which schema.
  enum Kind: String, CaseIterable, ArgumentValue {
    case settle, devices
  }

  static let name = "schema"
  static let summary = "Print the JSON Schema of the settings file or of device files."
  static let discussion = """
    Editors that know JSON Schema complete and check both files with it. The first line of a file \
    names its schema: "# yaml-language-server: $schema=devices.schema.json".
    """
  static let examples = [
    Example("settle schema devices > devices.schema.json", "The schema of device files."),
    Example("settle schema settle > settle.schema.json", "The schema of the settings file."),
  ]
  static let parameters: [Parameter<Self>] = [
    .argument(
      "kind",
      { $0.kind = $1 },
      isOptional: true,
      completion: .words(Kind.allCases.map(\.rawValue)),
      help: "settle for the settings file, devices for device files (default: settle)."
    )
  ]

  var kind = Kind.settle

  func run() -> ExitCode {
    switch kind {
    case .settle: StandardOutput.write(Schema.settings)
    case .devices: StandardOutput.write(Schema.devices)
    }
    return .done
  }
}
