// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Durability
package import JSON
package import LastOut
package import Routing
package import Values

/// What the host must do; ``GatewayCore/nextEffect(at:host:)`` returns effects in a fixed order.
package enum Effect: Sendable {
  /// Give the journal's thread this work; report its end by
  /// ``GatewayCore/storeFinished(_:at:)``.
  case write(JournalWork)
  /// Read every clock and report it by ``GatewayCore/clockRead(_:)``.
  case readClock
  /// Publish a command at the gateway's own broker; report the outcome by
  /// ``GatewayCore/commandFinished(_:_:at:)``.
  case publish(CommandPublish)
  /// Ask a device for its state, at the gateway's own broker.
  case requestState(StateRequestMessage)
  /// Publish a routed message; report the outcome by ``GatewayCore/routeFinished(_:_:)``.
  case forward(RouteMachine.Publish, broker: Int)
  /// Pass a change of a group's member on to the gateway that drives its device; report what
  /// becomes of it by ``GatewayCore/memberReported(_:_:reason:collapsed:isFinal:ofGroup:at:)``.
  case passOn(PassedChange)
  /// Flush or cancel what waits for a group's member at the gateway that drives its device.
  case endElsewhere(RecordedChange)
  /// Report a step in a command's life to its requester, to watchers and on its event topic.
  case emit(CommandEvent)
  /// A value of an earlier process is a command of this one; for the log.
  case resumed(ResumedValue)
  /// Hand a change to those who record.
  case record(RecordedChange)
  /// Target, actual value or phase of a key changed; only while ``GatewayCore/isStateWatched``.
  case stateChanged(KeyIndex)
  /// Publish a retained topic of the gateway's own; give it back by
  /// ``GatewayCore/statePutBack(_:)`` if there is no room.
  case publishState(StatePublisher.Item, payload: [UInt8], place: Int32)
  /// The definitions of a reload count from now on; see ``GatewayCore/beginReload(_:lanes:)``.
  ///
  /// The first effect of its step.
  case definitionsReplaced
  /// The reload has finished.
  case reloaded
  /// Whether the journal works has changed: publish `settle/status` again, tell the service
  /// manager.
  case storeHealth(JournalFault?)
  /// Write a line to the log.
  case log(LogEntry)
  /// Close the journal; report it by ``GatewayCore/storeClosed()``.
  case closeStore
  /// Commands are done: publish the last targets and `offline` on the status topic.
  case sayOffline
  /// The gateway has ended.
  case end(ShutdownReport)
}

/// What the host can do at the moment.
package struct HostState: Sendable {
  /// The brokers that accept another message, one bit for each.
  package var room: UInt64 = 0
  /// Messages of the gateway's own that the host still holds.
  package var backlog = 0
  /// Whether those, and everything handed to the broker, have been acknowledged.
  package var isIdle = true

  package init() {}

  func hasRoom(at broker: Int) -> Bool { room >> UInt64(broker) & 1 == 1 }
}

/// A value of an earlier process that was resumed as a command.
package struct ResumedValue: Sendable {
  package var key: KeyIndex
  package var value: Value
  /// The command's number in this process.
  package var number: UInt64
  /// Its identifier, the same as in the earlier process.
  package var id: JSONValue
  package var expiresAt: Moment
}

/// An accepted change as `settle record` writes it.
package struct RecordedChange: Sendable {
  package enum Operation: Sendable {
    case set(Value)
    case flush
    case cancel
  }

  package var operation: Operation
  package var key: KeyIndex
  package var at: Moment
  package var source: String?
  package var skipsQuiet = false
}

/// One line of the log: a constant message, and facts as fields.
package struct LogEntry: Sendable {
  package enum Level: Sendable {
    case info
    case warning
    case error
  }

  package var level: Level
  package var message: StaticString
  package var fields: KeyValuePairs<String, String>

  init(_ level: Level, _ message: StaticString, _ fields: KeyValuePairs<String, String> = [:]) {
    self.level = level
    self.message = message
    self.fields = fields
  }
}
