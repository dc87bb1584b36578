// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Operations

/// Reads passwords and tokens.
///
/// Messages never contain them.
struct Secrets {
  let environment: [String: String]
  let problems: Problems

  /// The maximum size of a secret, in bytes.
  private static let limit = 16 * 1024
  /// The shortest token that may protect an address beyond this machine, in characters.
  static let shortestToken = 16

  /// The password of the main broker.
  ///
  /// It comes from `SETTLE_MQTT_PASSWORD`, otherwise from the password file, otherwise from the
  /// service manager's credential `mqtt.password`.
  func mainPassword(_ positions: BrokerPositions) -> String? {
    if let password = environment["SETTLE_MQTT_PASSWORD"], !password.isEmpty { return password }
    if let password = filePassword(positions) { return password }
    guard positions.passwordFile == nil, let folder = environment["CREDENTIALS_DIRECTORY"],
      !folder.isEmpty
    else { return nil }
    let path = FilePath.join(folder, "mqtt.password")
    return secret(inFile: path, named: "the credential", at: .whole(path), isOptional: true)
  }

  /// The password in a broker's `password_file`.
  func filePassword(_ positions: BrokerPositions) -> String? {
    secret(at: positions.passwordFile)
  }

  /// The password in a `password_file`; `nil` where none is named.
  func secret(at file: (path: String, position: SourcePosition)?) -> String? {
    guard let (path, position) = file else { return nil }
    return secret(inFile: path, named: "password_file", at: position, isOptional: false)
  }

  /// The token that HTTP clients must present; `nil` when none is set.
  ///
  /// It comes from `SETTLE_HTTP_TOKEN`, otherwise from the token file, otherwise from the service
  /// manager's credential `http.token`.
  func token(in file: String?, at position: SourcePosition?) -> String? {
    if let token = environment["SETTLE_HTTP_TOKEN"], !token.isEmpty {
      return checked(token, named: "the token", at: .whole("$SETTLE_HTTP_TOKEN"))
    }
    if let file {
      return token(inFile: file, at: position ?? .whole(file), isOptional: false)
    }
    guard let folder = environment["CREDENTIALS_DIRECTORY"], !folder.isEmpty else { return nil }
    let path = FilePath.join(folder, "http.token")
    return token(inFile: path, at: .whole(path), isOptional: true)
  }

  private func token(
    inFile path: String,
    at position: SourcePosition,
    isOptional: Bool
  ) -> String? {
    secret(inFile: path, named: "token_file", at: position, isOptional: isOptional).flatMap {
      checked($0, named: "token_file: the token in '\(path)'", at: position)
    }
  }

  /// The content of a file that belongs to this user or root, and that others may not use.
  private func secret(
    inFile path: String,
    named name: String,
    at position: SourcePosition,
    isOptional: Bool
  ) -> String? {
    do throws(SafeFile.Problem) {
      let file = try SafeFile.read(path, limit: Self.limit, followsLinks: false)
      switch file.trust.flawOfProvided(for: FileTrust.user) {
      case .foreignOwner(let owner, let expected):
        problems.add(
          position,
          "\(name): '\(path)' belongs to user \(owner); it must belong to user \(expected), who runs "
            + "this, or to root"
        )
        return nil
      case .openToOthers(let mode):
        problems.add(
          position,
          "\(name): '\(path)' has mode \(String(mode, radix: 8)), which lets others read or write it; "
            + "allowed is 600, or 640 for a group (chmod 600 \(path))"
        )
        return nil
      case nil: return password(file.bytes, path: path, at: position)
      }
    } catch {
      if !isOptional || !error.isMissing {
        problems.add(position, "\(name): '\(path)' \(error.message)")
      }
      return nil
    }
  }

  /// Checks that a token fits in a header, and warns about a short one.
  private func checked(
    _ token: String,
    named name: String,
    at position: SourcePosition
  ) -> String? {
    guard token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      problems.add(position, "\(name) must be printable ASCII without spaces")
      return nil
    }
    if token.utf8.count < 22 {
      problems.warn(
        position,
        "\(name) has \(token.utf8.count) characters and can be guessed; "
          + "'openssl rand -hex 16' makes a good one"
      )
    }
    return token
  }

  /// Decodes a secret, without the line break that editors append.
  private func password(_ bytes: [UInt8], path: String, at position: SourcePosition) -> String? {
    var bytes = bytes
    while let last = bytes.last, last == 0x0A || last == 0x0D { bytes.removeLast() }
    guard let text = String(validating: bytes, as: UTF8.self), !text.utf8.contains(0) else {
      problems.add(position, "'\(path)' is not UTF-8 text")
      return nil
    }
    if text.isEmpty { problems.add(position, "'\(path)' is empty") }
    return text.isEmpty ? nil : text
  }
}
