// Settle
// SPDX-License-Identifier: Apache-2.0

/// Fetches passwords from where they are kept; they are never part of a message.
struct Secrets {
  let environment: [String: String]
  let problems: Problems

  /// The largest secret that is taken, in bytes.
  private static let limit = 16 * 1024

  /// The password of the gateway's own broker: `SETTLE_MQTT_PASSWORD`, else the file, else the
  /// credential `mqtt.password` of the service manager.
  func mainPassword(_ places: BrokerPlaces) -> String? {
    if let password = environment["SETTLE_MQTT_PASSWORD"], !password.isEmpty { return password }
    if let password = filePassword(places) { return password }
    guard places.passwordFile == nil, let folder = environment["CREDENTIALS_DIRECTORY"],
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
  func filePassword(_ places: BrokerPlaces) -> String? {
    guard let (path, position) = places.passwordFile else { return nil }
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

  /// The token that HTTP clients need: `SETTLE_HTTP_TOKEN`, else the file, else the credential
  /// `http.token` of the service manager; `nil` for none.
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

  /// A token travels in a header, and must not be guessed.
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

  /// Without the line end that editors put there.
  private func password(_ bytes: [UInt8], path: String, at position: SourcePosition) -> String? {
    var bytes = bytes
    while let last = bytes.last, last == 0x0A || last == 0x0D { bytes.removeLast() }
    guard let text = String(validating: bytes, as: UTF8.self), !text.utf8.contains(0) else {
      problems.add(position, "'\(path)' holds no text in UTF-8")
      return nil
    }
    if text.isEmpty { problems.add(position, "'\(path)' is empty") }
    return text.isEmpty ? nil : text
  }
}
