// Settle
// SPDX-License-Identifier: Apache-2.0

/// Where things stand in the settings file, for what can only be checked later.
struct SettingsPlaces {
  var main = BrokerPlaces()
  var brokers: [String: BrokerPlaces] = [:]
  /// The elements of `http.listen:`.
  var listen: [SourcePosition] = []
  /// `http.token_file:`, if it is there.
  var tokenFile: SourcePosition?
  /// `devices:`, if it is there.
  var devices: SourcePosition?
  /// Whether there is a `lanes:` section, so that other lanes are mistakes.
  var hasLanes = false
  var routes: [RoutePlaces] = []
  var inputs: [[String: InputPlaces]] = []
}

/// Where the parts of a broker's section stand.
struct BrokerPlaces {
  /// The URL, or what stands for it.
  var url: SourcePosition?
  var username: SourcePosition?
  /// The path as resolved, and where it stands.
  var passwordFile: (path: String, position: SourcePosition)?
}

/// Where the ends of a route stand.
struct RoutePlaces {
  let from: SourcePosition
  let to: SourcePosition
}

/// Where one change of an input stands.
struct InputPlaces {
  let key: SourcePosition
  let operation: SourcePosition
}
