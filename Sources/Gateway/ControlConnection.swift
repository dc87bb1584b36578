// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import Glibc
import Operations

/// One client of the control socket: lines in, replies out, nothing waited for.
final class ControlConnection {
  /// A pattern whose events the client wants, under the id it gave.
  struct Watch {
    let pattern: Pattern
    let id: JSONValue?
  }

  /// What the framer found.
  enum Line {
    case whole(ArraySlice<UInt8>, number: Int)
    case tooLong(number: Int)
    /// The input ended inside a line.
    case incomplete(number: Int)
  }

  let number: UInt64
  var watches: [Watch] = []
  var onLine: ((Line, ControlConnection) -> Void)?
  var onEnd: ((ControlConnection) -> Void)?
  private(set) var isTooSlow = false
  private let descriptor: Int32
  private var framer: LineFramer
  private var watch: IOWatch?
  private var output: [UInt8] = []
  private var written = 0
  private var openWaits = 0
  private var isAtEnd = false
  private var isEnded = false
  /// Unread output beyond which no further request is read.
  private static let pauseAt = 256 * 1024
  /// Unread output beyond which a watching client is dropped.
  private static let dropAt = 16 * 1024 * 1024

  init(number: UInt64, descriptor: Int32, lineLimit: Int) {
    self.number = number
    self.descriptor = descriptor
    framer = LineFramer(limit: lineLimit)
  }

  func start(on loop: EventLoop) throws(OperationsError) {
    watch = try loop.watch(descriptor, for: .read) { [weak self] ready in self?.handle(ready) }
  }

  /// A change of this client waits for later phases.
  func beginWait() { openWaits += 1 }

  func endWait() {
    openWaits = max(0, openWaits - 1)
    endIfDone()
  }

  func send(_ reply: ControlReply) {
    guard !isEnded else { return }
    reply.append(to: &output)
    output.append(0x0A)
    if output.count - written > Self.dropAt {
      isTooSlow = true
      return end()
    }
    flush()
  }

  func end() {
    guard !isEnded else { return }
    isEnded = true
    watch?.cancel()
    watch = nil
    close(descriptor)
    onEnd?(self)
  }

  private func handle(_ ready: IOInterest) {
    if ready.contains(.write) { flush() }
    if !isEnded, !isAtEnd, ready.contains(.read) || ready.contains(.hangUp) { read() }
    if !isEnded, isAtEnd, ready.contains(.hangUp) { end() }
  }

  private func read() {
    // A bounded number of rounds, so that one client cannot keep the loop.
    for _ in 0..<4 where !isEnded && !isPaused {
      var chunk = [UInt8](repeating: 0, count: 16 * 1024)
      let count = unsafe recv(descriptor, &chunk, chunk.count, 0)
      if count > 0 {
        framer.append(chunk.span.extracting(0..<count))
        takeLines()
      } else if count == 0 {
        return inputEnded()
      } else if errno == EAGAIN || errno == EINTR {
        break
      } else {
        return end()
      }
    }
    updateInterest()
  }

  private func takeLines() {
    while !isEnded, let found = framer.next() {
      switch found {
      case .line(let bytes, let number): onLine?(.whole(bytes, number: number), self)
      case .tooLong(let number): onLine?(.tooLong(number: number), self)
      }
    }
  }

  private func inputEnded() {
    isAtEnd = true
    if let rest = framer.finish() { onLine?(.incomplete(number: rest.number), self) }
    updateInterest()
    endIfDone()
  }

  private func endIfDone() {
    if isAtEnd, openWaits == 0, watches.isEmpty, written == output.count { end() }
  }

  private var isPaused: Bool { output.count - written > Self.pauseAt }

  private func flush() {
    while written < output.count {
      let count = unsafe output.withUnsafeBytes { bytes in
        unsafe Glibc.send(
          descriptor, bytes.baseAddress?.advanced(by: written), bytes.count - written,
          Int32(MSG_NOSIGNAL))
      }
      if count > 0 {
        written += count
      } else if errno == EAGAIN || errno == EINTR {
        break
      } else {
        return end()
      }
    }
    if written == output.count {
      output.removeAll(keepingCapacity: output.count <= Self.pauseAt)
      written = 0
    }
    updateInterest()
    endIfDone()
  }

  private func updateInterest() {
    guard !isEnded else { return }
    var interest: IOInterest = .hangUp
    if !isAtEnd, !isPaused { interest.insert(.read) }
    if written < output.count { interest.insert(.write) }
    if watch?.interest != interest { watch?.interest = interest }
  }
}
