// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc
import LastOut
import Operations

/// The events of the loop, what they defer, and the library's callbacks.
extension MQTTClient {
  /// Handles one event, then deferred work: nothing is closed or destroyed during the event.
  func work(_ body: (MQTTClient) -> Void) {
    guard !isBusy else {
      preconditionFailure("An event of the loop arrived inside another.")
    }
    isBusy = true
    body(self)
    performDeferredWork()
    isBusy = false
    rearm()
  }

  /// Performs deferred work, now that no call into the library is on the stack.
  private func performDeferredWork() {
    while true {
      if mustClose {
        mustClose = false
        beginClose()
      } else if let problem = connection?.problem {
        if case .closing = phase { finishClose() } else { end(problem) }
      } else if shouldWriteNow {
        connection?.writeOut()
        if connection?.problem == nil && shouldWriteNow { break }
      } else if canPublish && !wasReady {
        wasReady = true
        onReady?()
      } else {
        break
      }
    }
    connection?.updateInterest()
  }

  /// Whether deferred work is pending.
  var needsAttention: Bool {
    mustClose || connection?.problem != nil || (canPublish && !wasReady)
  }

  /// Whether to write now; before CONNACK the socket may not be open, and only the loop reports when
  /// it is writable.
  private var shouldWriteNow: Bool {
    guard let connection else { return false }
    return connection.isAccepted && connection.handle.wantsToWrite
  }

  /// Sends everything published in this batch, without waiting for the end of the batch.
  ///
  /// Publishes at QoS 0 may get their outcome; errors are reported with the next event. Has no effect
  /// inside a handler, after which the packets are sent anyway.
  package func flush() {
    guard let connection, connection.hasUnsent, !isBusy else { return }
    isBusy = true
    connection.hasUnsent = false
    connection.writeOut()
    isBusy = false
    connection.updateInterest()
    rearm()
  }

  /// Sends at the end of each batch; returns whether the owner may have more to do.
  func endBatch() -> Bool {
    let count = outcomeCount
    flush()
    return outcomeCount != count
  }

  /// Handles a message from the library.
  func received(
    _ message: UnsafePointer<mosquitto_message>,
    topic name: UnsafePointer<CChar>,
    properties: OpaquePointer?
  ) {
    let message = unsafe message.pointee
    statistics.received += 1
    let size = unsafe max(0, Int(message.payloadlen))
    if size > configuration.maximumPacket {
      ignoreOversized(size, topic: unsafe String(cString: name))
      return
    }
    if unsafe message.retain,
      unsafe !subscriptions.wantsRetained(String(cString: name), version)
    {
      statistics.retainedIgnored += 1
      onRetainedIgnored?(unsafe String(cString: name))
      return
    }
    guard let onMessage else { return }
    let topic = unsafe UnsafeRawBufferPointer(start: name, count: strlen(name))
    let payload = unsafe UnsafeRawBufferPointer(start: message.payload, count: size)
    let inbound = unsafe InboundMessage(
      flags: InboundMessage.Flags(qos: Int(message.qos), retained: message.retain),
      properties: properties
    )
    unsafe onMessage(
      Span(_unsafeBytes: topic),
      Span(_unsafeBytes: payload),
      inbound
    )
  }

  /// Handles the reply to a publish, or the end of writing one at QoS 0.
  func wasAnswered(_ identifier: Int32, code: Int32) {
    guard let entry = window.answered(identifier: identifier) else { return }
    outcomeCount &+= 1
    guard code >= 0x80 else {
      onOutcome?(entry.token, .acknowledged)
      return
    }
    refuse(entry.token, ReasonCode.words(code))
  }

  /// Handles the broker's answer for one filter of a SUBSCRIBE.
  func subscriptionAnswered(_ filter: String, code: Int32) {
    guard code >= 0x80 else {
      onSubscribed?(filter, nil)
      return
    }
    let reason = ReasonCode.words(code)
    log.warning("The broker refused a subscription", ["filter": filter, "reason": reason])
    onSubscribed?(filter, reason)
  }

  private func ignoreOversized(_ size: Int, topic: String) {
    statistics.oversizedIgnored += 1
    guard statistics.oversizedIgnored == 1 else { return }
    log.warning(
      "Message above the size limit ignored; further ones are only counted",
      ["topic": topic, "bytes": "\(size)", "limit": "\(configuration.maximumPacket)"]
    )
  }
}
