// Settle
// SPDX-License-Identifier: Apache-2.0

/// Device files of the scenarios.
enum DeviceText {
  /// A Zigbee lamp as everybody has one, with a quick policy.
  static func lamp(policy: String = "{delay: 150ms, max_wait: none}", more: String = "") -> String {
    """
    desk-lamp:
      profile: zigbee2mqtt/light
      topic: zigbee2mqtt/desk_lamp
      properties:
        brightness: {policy: \(policy), confirm: {retries: 0}}
    \(more)

    """
  }

  /// What the lamp is asked while nothing of it is known.
  static let lampRequest = #"{"state":"","brightness":"","color_temp":"","color":""}"#

  /// `count` devices `dev0`, `dev1` … without state: `cmd/devN` gets `{"v":…}`.
  static func levels(_ count: Int, policy: String, more: String = "") -> String {
    (0..<count).map {
      """
      dev\($0):
        properties:
          level: {type: number, range: [0, 1000000], step: 1, policy: \(policy), \
      command: {topic: cmd/dev\($0), payload: {v: $value}}\(more)}

      """
    }.joined()
  }
}
