// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import JSON
import JSONParsing

/// The subjects and the JSON of a cluster's records, which `nats stream get` shows.
enum RecordCoding {
  /// The part of a subject that names a record.
  static func token(_ key: RecordKey) -> String {
    switch key {
    case .member(let name): "member.\(escaped(name))"
    case .owner(let partition): "owner.\(partition.number)"
    }
  }

  static func key(_ token: some StringProtocol) -> RecordKey? {
    let parts = token.split(separator: ".", maxSplits: 1)
    guard parts.count == 2 else { return nil }
    switch parts[0] {
    case "member": return unescaped(parts[1]).map { .member($0) }
    case "owner": return Int(parts[1]).map { .owner(Partition($0)) }
    default: return nil
    }
  }

  static func bytes(_ record: ClusterRecord) -> [UInt8] {
    let json: JSONValue =
      switch record {
      case .member(let member):
        .object([
          "incarnation": hex(member.incarnation), "state": .string(member.state.rawValue),
          "beat": .integer(Int64(truncatingIfNeeded: member.beat)), "digest": hex(member.digest),
        ])
      case .owner(let owner):
        .object([
          "member": owner.member.map { .string($0) } ?? .null,
          "incarnation": hex(owner.incarnation),
          "beat": .integer(Int64(truncatingIfNeeded: owner.beat)),
          "epoch": .integer(Int64(truncatingIfNeeded: owner.epoch)),
        ])
      }
    return JSONWriter.bytes(json)
  }

  /// Reads the record of a key; `nil` for anything else.
  static func record(_ bytes: [UInt8], of key: RecordKey) -> ClusterRecord? {
    guard let json = try? JSONParser.parse(bytes.span),
      let incarnation = number(json["incarnation"]), let beat = count(json["beat"])
    else { return nil }
    switch key {
    case .member:
      guard let word = json["state"]?.string, let state = MemberRecord.State(rawValue: word),
        let digest = number(json["digest"])
      else { return nil }
      return .member(
        MemberRecord(
          incarnation: incarnation,
          state: state,
          beat: beat,
          digest: digest
        )
      )
    case .owner:
      guard let epoch = count(json["epoch"]) else { return nil }
      return .owner(
        OwnerRecord(
          member: json["member"]?.string,
          incarnation: incarnation,
          beat: beat,
          epoch: epoch
        )
      )
    }
  }

  // 64 bits are more than JSON's numbers keep everywhere.
  private static func hex(_ number: UInt64) -> JSONValue {
    .string(String(number, radix: 16))
  }

  private static func number(_ value: JSONValue?) -> UInt64? {
    value?.string.flatMap { UInt64($0, radix: 16) }
  }

  /// The next record's is greater by one.
  private static func count(_ value: JSONValue?) -> UInt64? {
    guard case .integer(let number)? = value, (0..<Int64.max).contains(number) else { return nil }
    return UInt64(number)
  }

  /// A name as one level of a subject: other bytes than letters, digits and `-` as `_` and two
  /// digits.
  static func escaped(_ name: String) -> String {
    var result = ""
    for byte in name.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
        result.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        result += "_" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return result
  }

  static func unescaped(_ token: some StringProtocol) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(token.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "_") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2,
        let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(code)
      rest = rest.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
