// Settle
// SPDX-License-Identifier: Apache-2.0

/// One packet that a ``ScriptedBroker`` received.
package struct ScriptedPacket: Hashable, Sendable {
  /// The packet types that scripts use.
  package enum Kind: UInt8, Sendable {
    case connect = 1
    case publish = 3
    case subscribe = 8
    case ping = 12
  }

  /// The number of its connection, from 1 on.
  package let connection: Int
  package let type: UInt8
  /// The low half of the first byte.
  package let flags: UInt8
  /// The bytes after type and length.
  package let body: [UInt8]
  package let isVersion5: Bool

  init(_ bytes: ArraySlice<UInt8>, connection: Int, isVersion5: Bool) {
    self.connection = connection
    let first = bytes.first ?? 0
    type = first >> 4
    flags = first & 15
    let length = bytes.dropFirst().firstIndex { $0 < 0x80 } ?? bytes.startIndex
    body = Array(bytes[min(length + 1, bytes.endIndex)...])
    // CONNECT names the protocol's version itself.
    self.isVersion5 = type == 1 ? body.count > 6 && body[6] == 5 : isVersion5
  }

  package var kind: Kind? { Kind(rawValue: type) }

  /// The topic of a PUBLISH.
  package var topic: String? {
    guard kind == .publish, body.count >= 2 else { return nil }
    return String(decoding: body.dropFirst(2).prefix(number(at: 0)), as: UTF8.self)
  }

  /// The packet identifier of a PUBLISH or SUBSCRIBE, most significant byte first.
  package var identifier: [UInt8] {
    let place = kind == .publish ? 2 + number(at: 0) : 0
    return Array(body.dropFirst(place).prefix(2))
  }

  /// CONNACK with a code.
  package func connack(_ code: UInt8) -> [UInt8] {
    isVersion5 ? [0x20, 3, 0, code, 0] : [0x20, 2, 0, code]
  }

  /// PUBACK with a code, which 3.1.1 does not have.
  package func puback(_ code: UInt8) -> [UInt8] {
    isVersion5 ? [0x40, 4] + identifier + [code, 0] : [0x40, 2] + identifier
  }

  /// DISCONNECT from the broker, of MQTT 5.
  package static func disconnect(_ code: UInt8) -> [UInt8] { [0xE0, 2, code, 0] }

  /// A well-behaved broker's answer.
  package var politeAnswer: [ScriptedBroker.Action] {
    switch kind {
    case .connect: [.send(connack(0))]
    case .subscribe: [.send(suback)]
    case .publish: flags & 6 == 2 ? [.send(puback(0))] : []
    case .ping: [.send([0xD0, 0])]
    case nil: []
    }
  }

  private var suback: [UInt8] {
    var place = isVersion5 ? 3 + Int(body.count > 2 ? body[2] : 0) : 2
    var codes: [UInt8] = []
    while place + 2 < body.count {
      place += 2 + number(at: place) + 1
      codes.append(1)
    }
    let properties: [UInt8] = isVersion5 ? [0] : []
    let rest = identifier + properties + codes
    return [0x90, UInt8(truncatingIfNeeded: rest.count)] + rest
  }

  private func number(at place: Int) -> Int {
    place + 1 < body.count ? Int(body[place]) << 8 | Int(body[place + 1]) : 0
  }
}
