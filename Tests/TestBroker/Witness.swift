// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc
import LastOut
import Operations

/// The thread, the library handle and the records behind a ``RecordingSubscriber``.
@safe final class Witness: @unchecked Sendable {
  // Sendable because the records are guarded by `lock`, and libmosquitto documents the calls made
  // through `handle` as thread safe once mosquitto_threaded_set() has run.

  struct Records {
    var messages: [RecordingSubscriber.Message] = []
    var isSubscribed = false
    var acknowledged: Set<Int32> = []
    var isStopping = false
    /// The newest of its own echoes that has come back.
    var echo = 0
  }

  /// Messages below this topic are echoes, which nobody records.
  private static let echoes = "witness/"
  private var ownEchoes: String { unsafe "\(Self.echoes)\(UInt(bitPattern: handle))" }

  private let handle: OpaquePointer
  private let filters: [String]
  private let qos: Int32
  private var records = Records()
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var thread: WorkerThread?

  init(port: Int, filters: [String], qos: Int32) throws {
    mosquitto_lib_init()
    guard let handle = unsafe mosquitto_new(nil, true, nil) else {
      throw TestBrokerError("mosquitto_new: \(errno)")
    }
    unsafe self.handle = handle
    self.filters = filters
    self.qos = qos
    unsafe pthread_mutex_init(lock, nil)
    var attributes = pthread_condattr_t()
    unsafe pthread_condattr_init(&attributes)
    unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    unsafe pthread_cond_init(changed, &attributes)
    unsafe mosquitto_int_option(handle, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5)
    unsafe mosquitto_int_option(handle, MOSQ_OPT_TCP_NODELAY, 1)
    // mosquitto 2.0.11 sends more messages of QoS 2 at once than the default of 20 permits, when
    // one ends while others wait; the library would then close the connection.
    unsafe mosquitto_int_option(handle, MOSQ_OPT_RECEIVE_MAXIMUM, 65_535)
    unsafe mosquitto_threaded_set(handle, true)
    unsafe mosquitto_user_data_set(handle, Unmanaged.passUnretained(self).toOpaque())
    setCallbacks()
    let code = unsafe mosquitto_connect(handle, "127.0.0.1", Int32(port), 60)
    guard code == 0 else { throw TestBrokerError("no broker at port \(port): \(code)") }
    thread = try WorkerThread { self.run() }
  }

  deinit {
    unsafe mosquitto_destroy(handle)
    unsafe pthread_mutex_destroy(lock)
    unsafe pthread_cond_destroy(changed)
    unsafe lock.deallocate()
    unsafe changed.deallocate()
  }

  /// Ends the thread; without effect the second time.
  func stop() {
    change { $0.isStopping = true }
    unsafe mosquitto_disconnect(handle)
    thread?.join()
  }

  func read<Result>(_ body: (Records) -> Result) -> Result {
    unsafe pthread_mutex_lock(lock)
    defer { unsafe pthread_mutex_unlock(lock) }
    return body(records)
  }

  func change(_ body: (inout Records) -> Void) {
    unsafe pthread_mutex_lock(lock)
    body(&records)
    unsafe pthread_cond_broadcast(changed)
    unsafe pthread_mutex_unlock(lock)
  }

  /// Waits until the records satisfy `condition`, checked after each change.
  func wait(within limit: Duration, _ condition: (Records) -> Bool) -> Bool {
    var wait = Wait(within: limit)
    unsafe pthread_mutex_lock(lock)
    defer { unsafe pthread_mutex_unlock(lock) }
    while !condition(records) {
      guard let left = wait.remaining(records.messages.count) else { return false }
      let next = EventLoop.now().advanced(by: left).nanoseconds
      var time = timespec(
        tv_sec: Int(next / 1_000_000_000),
        tv_nsec: Int(next % 1_000_000_000)
      )
      unsafe pthread_cond_timedwait(changed, lock, &time)
    }
    return true
  }

  func publish(
    _ topic: String,
    _ payload: [UInt8],
    qos: Int32,
    retain: Bool,
    responseTopic: String?,
    correlationData: [UInt8]?,
    userProperties: [String: String]
  ) -> Bool {
    var properties: OpaquePointer?
    defer { unsafe mosquitto_property_free_all(&properties) }
    if let responseTopic {
      unsafe mosquitto_property_add_string(
        &properties,
        Int32(MQTT_PROP_RESPONSE_TOPIC.rawValue),
        responseTopic
      )
    }
    if let correlationData {
      unsafe mosquitto_property_add_binary(
        &properties,
        Int32(MQTT_PROP_CORRELATION_DATA.rawValue),
        correlationData,
        UInt16(clamping: correlationData.count)
      )
    }
    for (name, value) in userProperties {
      unsafe mosquitto_property_add_string_pair(
        &properties,
        Int32(MQTT_PROP_USER_PROPERTY.rawValue),
        name,
        value
      )
    }
    var identifier: Int32 = 0
    let code = unsafe mosquitto_publish_v5(
      handle,
      &identifier,
      topic,
      Int32(clamping: payload.count),
      payload,
      qos,
      retain,
      properties
    )
    guard code == 0 else { return false }
    return wait(within: .patience) { $0.acknowledged.contains(identifier) }
  }

  /// Waits until the broker sends this client what it publishes; `false` if that takes too long.
  ///
  /// The connection may have ended without its notice, so it publishes again until one comes back.
  func catchUp() -> Bool {
    let first = read { $0.echo } + 1
    var wait = Wait()
    var number = first
    while wait.remaining() != nil {
      let text = Array("\(number)".utf8)
      unsafe mosquitto_publish(handle, nil, ownEchoes, Int32(text.count), text, 0, false)
      if self.wait(within: .milliseconds(200), { $0.echo >= first }) { return true }
      number += 1
    }
    return false
  }

  private func run() {
    while true {
      let code = unsafe mosquitto_loop(handle, 1000, 1)
      if read({ $0.isStopping }) { return }
      guard code != 0 else { continue }
      // The broker is away: 20 ms between attempts.
      var pause = timespec(tv_sec: 0, tv_nsec: 20_000_000)
      unsafe nanosleep(&pause, nil)
      unsafe mosquitto_reconnect(handle)
    }
  }

  private func setCallbacks() {
    unsafe mosquitto_connect_v5_callback_set(handle) { handle, context, code, _, _ in
      guard code == 0, let witness = unsafe Witness.from(context) else { return }
      for filter in witness.filters {
        unsafe mosquitto_subscribe(handle, nil, filter, witness.qos)
      }
      if witness.filters.isEmpty { witness.change { $0.isSubscribed = true } }
    }
    unsafe mosquitto_subscribe_v5_callback_set(handle) { _, context, _, _, _, _ in
      unsafe Witness.from(context)?.change { $0.isSubscribed = true }
    }
    unsafe mosquitto_publish_v5_callback_set(handle) { _, context, identifier, _, _ in
      unsafe Witness.from(context)?.change { $0.acknowledged.insert(identifier) }
    }
    unsafe mosquitto_message_v5_callback_set(handle) { _, context, message, properties in
      let now = EventLoop.now()
      guard let message = unsafe message?.pointee, let witness = unsafe Witness.from(context) else {
        return
      }
      let received = unsafe Witness.message(message, properties, at: now)
      guard !received.topic.hasPrefix(Witness.echoes) else { return witness.heardEcho(received) }
      witness.change { $0.messages.append(received) }
    }
  }

  private func heardEcho(_ message: RecordingSubscriber.Message) {
    guard message.topic == ownEchoes, let number = Int(message.text) else { return }
    change { $0.echo = max($0.echo, number) }
  }

  private static func from(_ context: UnsafeMutableRawPointer?) -> Witness? {
    guard let context = unsafe context else { return nil }
    return unsafe Unmanaged<Witness>.fromOpaque(context).takeUnretainedValue()
  }

  private static func message(
    _ message: mosquitto_message,
    _ properties: OpaquePointer?,
    at now: Moment
  ) -> RecordingSubscriber.Message {
    let bytes = unsafe UnsafeRawBufferPointer(
      start: message.payload,
      count: Int(message.payloadlen)
    )
    var expiry: UInt32 = 0
    let hasExpiry = unsafe mosquitto_property_read_int32(
      properties,
      Int32(MQTT_PROP_MESSAGE_EXPIRY_INTERVAL.rawValue),
      &expiry,
      false
    )
    var data: UnsafeMutableRawPointer?
    var count: UInt16 = 0
    unsafe mosquitto_property_read_binary(
      properties,
      Int32(MQTT_PROP_CORRELATION_DATA.rawValue),
      &data,
      &count,
      false
    )
    defer { unsafe free(data) }
    return unsafe RecordingSubscriber.Message(
      topic: message.topic.map { unsafe String(cString: $0) } ?? "",
      payload: Array(bytes),
      qos: Int(message.qos),
      retained: message.retain,
      at: now,
      userProperties: userProperties(properties),
      correlationData: data.map {
        unsafe Array(UnsafeRawBufferPointer(start: $0, count: Int(count)))
      },
      expirySeconds: hasExpiry == nil ? nil : Int(expiry)
    )
  }

  private static func userProperties(_ properties: OpaquePointer?) -> [String: String] {
    var found: [String: String] = [:]
    var position = unsafe properties
    var name: UnsafeMutablePointer<CChar>?
    var value: UnsafeMutablePointer<CChar>?
    var isFirst = true
    while true {
      unsafe position = mosquitto_property_read_string_pair(
        position,
        Int32(MQTT_PROP_USER_PROPERTY.rawValue),
        &name,
        &value,
        !isFirst
      )
      guard unsafe position != nil, let key = unsafe name, let text = unsafe value else {
        return found
      }
      isFirst = false
      unsafe found[String(cString: key)] = unsafe String(cString: text)
      unsafe free(key)
      unsafe free(text)
    }
  }
}
