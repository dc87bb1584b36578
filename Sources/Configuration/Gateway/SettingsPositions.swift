// Settle
// SPDX-License-Identifier: Apache-2.0

/// Positions in the settings file, for checks that run after it is read.
struct SettingsPositions {
  var main = BrokerPositions()
  var brokers: [String: BrokerPositions] = [:]
  /// The elements of `http.listen:`.
  var listen: [SourcePosition] = []
  /// `http.token_file:`, if present.
  var tokenFile: SourcePosition?
  var cluster: ClusterPositions?
  /// `devices:`, if present.
  var devices: SourcePosition?
  /// Whether the lanes of devices are compared with the settings' lanes, even where those are
  /// built-in settings.
  var checksLanes = false
  var routes: [RoutePositions] = []
  var inputs: [[String: InputPositions]] = []
}

/// Positions in a broker's section.
struct BrokerPositions {
  /// The URL, or the section when the URL is absent.
  var url: SourcePosition?
  var username: SourcePosition?
  /// The resolved path and its position.
  var passwordFile: (path: String, position: SourcePosition)?
}

/// Positions of a route's ends.
struct RoutePositions {
  let from: SourcePosition
  let to: SourcePosition
}

/// Positions of one change of an input.
struct InputPositions {
  let key: SourcePosition
  let operation: SourcePosition
}
