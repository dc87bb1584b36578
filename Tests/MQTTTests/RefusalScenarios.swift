// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import LastOut
import MQTT
import Operations
import TestBroker
import Testing

/// A broker that refuses, with each of its reason codes; the peer follows a script.
@Suite(.blocking) struct RefusalScenarios {
  /// What a client without a user name should look at.
  private static let advice =
    "; it may want a user name: set `username` and `password_file`"

  /// A web server has its own words for a packet that it does not understand.
  @Test(arguments: ["HTTP/1.1 400 Bad Request\r\n\r\n", "<!DOCTYPE HTML>\n<html>\n"])
  func `a peer that speaks HTTP is named as such and tried again slowly`(answer: String) throws {
    let broker = try ScriptedBroker(.init { _ in [.send(Array(answer.utf8)), .close] })
    let harness = try Harness(.local(port: broker.port))

    let start = EventLoop.now()
    harness.client.start()

    #expect(harness.run { harness.waitingReason != nil })
    #expect(
      harness.waitingReason == "the other side speaks HTTP, not MQTT; see the port in `url`"
    )
    guard case .waiting(let until, _) = harness.client.state else { return }
    #expect(start.duration(to: until) > .seconds(25))
  }

  @Test func `a peer that answers with an alert of TLS is named as such`() throws {
    // protocol_version, as Go's servers send it.
    let alert: [UInt8] = [0x15, 0x03, 0x03, 0, 2, 2, 70]
    let broker = try ScriptedBroker(.init { _ in [.send(alert), .close] })
    let harness = try Harness(.local(port: broker.port))

    harness.client.start()

    #expect(harness.run { harness.waitingReason != nil })
    #expect(
      harness.waitingReason == "the other side speaks TLS at this port; use mqtts:// in `url`"
    )
    #expect(harness.client.trouble?.cause == .notMQTT)
  }

  @Test(arguments: [
    (
      "HTTP/1.1 400 Bad Request\r\n\r\n",
      "the other side speaks HTTP, not MQTT; see the port in `url`"
    ),
    ("", "no answer to CONNECT within 0.5 seconds; is this the port of a broker?"),
  ])
  func `a web server that waits for the end of a line is named if it answers`(
    answer: String,
    reason: String
  ) throws {
    let listener = try LoopbackPort.listener()
    let server = try WorkerThread {
      let connection = accept(listener.descriptor, nil, nil)
      var byte: UInt8 = 0
      while unsafe recv(connection, &byte, 1, 0) == 1, byte != 0x0A {}
      let bytes = Array(answer.utf8)
      unsafe send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
      // Until the client has had enough.
      while !bytes.isEmpty, unsafe recv(connection, &byte, 1, 0) == 1 {}
      close(connection)
    }
    defer {
      server.join()
      close(listener.descriptor)
    }
    var configuration = MQTTConfiguration.local(port: listener.port)
    configuration.connectDeadline = .milliseconds(500)
    let harness = try Harness(configuration)

    harness.client.start()

    #expect(harness.run { harness.waitingReason != nil })
    #expect(harness.waitingReason == reason)
  }

  /// A refusal that needs a fix is retried about once a minute, any other soon.
  @Test(
    arguments: [
      (.v311, 4, "bad user name or password (0x04)\(Self.advice)"),
      (.v311, 5, "not authorized (0x05)\(Self.advice)"),
      (.v311, 2, "client id rejected (0x02); see `client_id`"),
      (.v5, 0x86, "bad user name or password (0x86)\(Self.advice)"),
      (.v5, 0x87, "not authorized (0x87)\(Self.advice)"), (.v5, 0x8A, "banned (0x8a)"),
      (.v5, 0x85, "client id not valid (0x85); see `client_id`"),
    ] as [(MQTTConfiguration.ProtocolVersion, UInt8, String)]
  )
  func `a refusal that needs a fix is logged in words and retried slowly`(
    version: MQTTConfiguration.ProtocolVersion,
    code: UInt8,
    words: String
  ) throws {
    let broker = try ScriptedBroker(.init { [.send($0.connack(code))] })
    let harness = try Harness(.local(port: broker.port, version: version))

    let start = EventLoop.now()
    harness.client.start()

    #expect(harness.run { harness.waitingReason != nil })
    #expect(harness.waitingReason == "the broker refused the connection: \(words)")
    guard case .waiting(let until, _) = harness.client.state else { return }
    #expect(start.duration(to: until) > .seconds(25))
    #expect(broker.connections.count == 1)
  }

  @Test(
    arguments: [
      (.v311, 3, "server unavailable (0x03)"), (.v5, 0x88, "server unavailable (0x88)"),
      (.v5, 0x89, "server busy (0x89)"), (.v5, 0x97, "quota exceeded (0x97)"),
      (.v5, 0x9F, "connection rate exceeded (0x9f)"), (.v5, 0x80, "unspecified error (0x80)"),
    ] as [(MQTTConfiguration.ProtocolVersion, UInt8, String)]
  )
  func `a broker that is not available is retried until it accepts`(
    version: MQTTConfiguration.ProtocolVersion,
    code: UInt8,
    words: String
  ) throws {
    let broker = try ScriptedBroker(
      .init {
        $0.kind == .connect && $0.connection <= 3 ? [.send($0.connack(code))] : $0.politeAnswer
      }
    )
    let harness = try Harness(.local(port: broker.port, version: version))

    #expect(harness.connect())

    #expect(broker.connections.count == 4)
    #expect(harness.log.count(of: "No connection to the broker") == 1)
    #expect(harness.log.count(of: words) == 1)
    harness.set("a", "1")
    #expect(harness.run { harness.isSettled })
  }

  /// The broker ends the connection with a reason.
  @Test(
    arguments: [
      (0x8B, "server shutting down (0x8b)"), (0x95, "packet too large (0x95)"),
      (0x97, "quota exceeded (0x97)"), (0x82, "protocol error (0x82)"),
      (0x98, "administrative action (0x98)"),
    ] as [(UInt8, String)]
  )
  func `a connection that the broker ends with a reason is made again`(
    code: UInt8,
    words: String
  ) throws {
    let broker = try ScriptedBroker(
      .init { packet in
        guard packet.kind == .publish, packet.connection == 1 else { return packet.politeAnswer }
        return [.send(ScriptedPacket.disconnect(code)), .close]
      }
    )
    let harness = try Harness(.local(port: broker.port))
    #expect(harness.connect())

    harness.set("a", "1")

    #expect(harness.run { harness.waitingReason != nil })
    #expect(harness.waitingReason == "the broker closed the connection: \(words)")
    #expect(harness.run { harness.isSettled })
    #expect(broker.packets.compactMap(\.topic) == ["a", "a"])
  }

  @Test func `after a client-id conflict it waits about a minute and logs it`() throws {
    let broker = try ScriptedBroker(
      .init {
        $0.kind == .subscribe ? [.send(ScriptedPacket.disconnect(0x8E)), .close] : $0.politeAnswer
      }
    )
    let harness = try Harness(.local(port: broker.port))
    harness.client.subscribe([.init(filter: "in", wantsRetained: false)])

    let start = EventLoop.now()
    harness.client.start()

    #expect(harness.run { harness.waitingReason != nil })
    #expect(harness.waitingReason?.contains("same client id (0x8e)") == true)
    guard case .waiting(let until, _) = harness.client.state else { return }
    #expect(start.duration(to: until) > .seconds(25))
  }

  /// The same publish is not sent again, and the requester gets the reason.
  @Test(
    arguments: [
      (0x80, "unspecified error (0x80)"), (0x83, "implementation specific error (0x83)"),
      (0x87, "not authorized (0x87)"), (0x90, "topic name invalid (0x90)"),
      (0x97, "quota exceeded (0x97)"), (0x99, "payload format invalid (0x99)"),
    ] as [(UInt8, String)]
  )
  func `a publish that the broker refuses ends with the reason in words, and is not sent again`(
    code: UInt8,
    words: String
  ) throws {
    let broker = try ScriptedBroker(
      .init { $0.topic == "no" ? [.send($0.puback(code))] : $0.politeAnswer }
    )
    let harness = try Harness(.local(port: broker.port))
    #expect(harness.connect())

    harness.set("no", "1")
    harness.set("yes", "1")

    #expect(harness.run { harness.isSettled })
    #expect(harness.outcomes.map(\.outcome) == [.refused(words), .acknowledged])
    #expect(broker.packets.compactMap(\.topic) == ["no", "yes"])
    #expect(harness.client.statistics.losses == 0)
  }

  /// MQTT has no such codes for a publish.
  ///
  /// Newer versions of libmosquitto end the connection, older ones pass the code on.
  @Test(arguments: [0x95, 0xC5] as [UInt8])
  func `a publish that is refused with an unknown code holds up no other`(code: UInt8) throws {
    let broker = try ScriptedBroker(
      .init { $0.topic == "no" ? [.send($0.puback(code))] : $0.politeAnswer }
    )
    let harness = try Harness(.local(port: broker.port))
    #expect(harness.connect())

    harness.set("no", "1")
    harness.set("yes", "1")

    #expect(harness.run { harness.outcomes.contains { $0.outcome == .acknowledged } })
    #expect(broker.packets.count { $0.topic == "no" } <= 4)
  }

  @Test func `no matching subscribers is no refusal`() throws {
    let broker = try ScriptedBroker(
      .init { $0.kind == .publish ? [.send($0.puback(0x10))] : $0.politeAnswer }
    )
    let harness = try Harness(.local(port: broker.port))
    #expect(harness.connect())

    harness.set("a", "1")

    #expect(harness.run { harness.isSettled })
    #expect(harness.outcomes.map(\.outcome) == [.acknowledged])
  }

  /// The line ends in the middle of the TLS handshake, or before it.
  @Test(arguments: [true, false], [true, false])
  func `a peer that hangs up in the TLS handshake costs no time`(
    isReset: Bool,
    isBeforeHello: Bool
  ) throws {
    let end: [ScriptedBroker.Action] = isReset ? [.reset] : [.close]
    let broker = try ScriptedBroker(
      .init(
        atConnection: { _ in isBeforeHello ? end : [] },
        atPacket: { _ in isBeforeHello ? [] : end }
      )
    )
    var configuration = MQTTConfiguration.local(port: broker.port)
    configuration.endpoint = .tls(host: "localhost", port: broker.port)
    let harness = try Harness(configuration)
    harness.client.start()

    #expect(harness.run { harness.client.statistics.attempts >= 2 })

    // The loop runs on this thread; its CPU time counts from the end of the first attempt.
    let (before, start) = (ownProcessorTime(), EventLoop.now())
    #expect(harness.run { harness.client.statistics.attempts >= 5 })
    let used = ownProcessorTime() - before
    #expect(used < start.duration(to: EventLoop.now()) / 5)
    #expect(harness.client.statistics.connections == 0)
  }
}

/// The CPU time of the calling thread.
private func ownProcessorTime() -> Duration {
  var time = timespec()
  unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
