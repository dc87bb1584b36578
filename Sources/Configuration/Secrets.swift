// Settle
// SPDX-License-Identifier: Apache-2.0

/// Reads passwords and tokens.
///
/// Messages never contain them.
struct Secrets {
  let environment: [String: String]
  let problems: Problems

  /// The maximum size of a secret, in bytes.
  private static let limit = 16 * 1024

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
    do throws(SafeFile.Problem) {
      let file = try SafeFile.read(path, limit: Self.limit, followsLinks: false)
      return password(file.bytes, path: path, at: .start(of: path))
    } catch {
      if !error.isMissing { problems.add(.start(of: path), "the credential \(error.message)") }
      return nil
    }
  }

  /// The password in a broker's `password_file`.
  func filePassword(_ positions: BrokerPositions) -> String? {
    guard let (path, position) = positions.passwordFile else { return nil }
    do throws(SafeFile.Problem) {
      let file = try SafeFile.read(path, limit: Self.limit, followsLinks: false)
      if file.mode & 0o007 != 0 {
        problems.warn(position, "password_file: '\(path)' is open to everybody; chmod o= it")
      }
      return password(file.bytes, path: path, at: position)
    } catch {
      problems.add(position, "password_file: '\(path)' \(error.message)")
      return nil
    }
  }

  /// The token that HTTP clients must present; `nil` when none is set.
  ///
  /// It comes from `SETTLE_HTTP_TOKEN`, otherwise from the token file, otherwise from the service
  /// manager's credential `http.token`.
  func token(in file: String?, at position: SourcePosition?) -> String? {
    if let token = environment["SETTLE_HTTP_TOKEN"], !token.isEmpty {
      return checked(token, named: "the token", at: .start(of: "$SETTLE_HTTP_TOKEN"))
    }
    if let file {
      return token(inFile: file, at: position ?? .start(of: file), isOptional: false)
    }
    guard let folder = environment["CREDENTIALS_DIRECTORY"], !folder.isEmpty else { return nil }
    let path = FilePath.join(folder, "http.token")
    return token(inFile: path, at: .start(of: path), isOptional: true)
  }

  private func token(
    inFile path: String,
    at position: SourcePosition,
    isOptional: Bool
  ) -> String? {
    do throws(SafeFile.Problem) {
      let file = try SafeFile.read(path, limit: Self.limit, followsLinks: false)
      if file.mode & 0o007 != 0 {
        problems.warn(position, "token_file: '\(path)' is open to everybody; chmod o= it")
      }
      return password(file.bytes, path: path, at: position).flatMap {
        checked($0, named: "token_file: the token in '\(path)'", at: position)
      }
    } catch {
      if !isOptional || !error.isMissing {
        problems.add(position, "token_file: '\(path)' \(error.message)")
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
      problems.add(position, "\(name) is not one word of ASCII")
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
