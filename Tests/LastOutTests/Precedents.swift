// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Series of changes from other libraries' tests, with the expected runs of the queue.
///
/// Changes are written `time:value`, in milliseconds, with `@delay` for a delay of their own;
/// `cancel` and `flush` stand for themselves, and a flush also for the end of a sequence.
struct Precedent: Sendable {
  /// Whether the other library does the same.
  enum Verdict: Sendable {
    case agrees
    /// The other library does something else, which is named.
    case differs(String)
  }

  let library: String
  let name: String
  let policy: Policy
  let changes: String
  let runs: String
  var verdict = Verdict.agrees
}

private func debounce(_ delay: Int, maxWait: Int? = nil, leading: Bool = false) -> Policy {
  Policy(
    delay: .milliseconds(delay),
    maxWait: maxWait.map { .milliseconds($0) },
    leading: leading
  )
}

private func throttle(_ time: Int, leading: Bool = true) -> Policy {
  Policy(
    delay: .milliseconds(time),
    maxWait: .milliseconds(time),
    leading: leading,
    minInterval: .milliseconds(time)
  )
}

private func first(_ time: Int) -> Policy { .leadingOnly(delay: .milliseconds(time)) }

private func every(_ step: Int, from start: Int = 0, through end: Int) -> String {
  stride(from: start, through: end, by: step).map { "\($0):\($0)" }.joined(separator: " ")
}

extension Precedent {
  static let all = lodash + underscore + rxjs + kotlin + reactiveSwift + asyncAlgorithms

  private static func rows(
    _ library: String,
    _ rows: [(String, Policy, String, String, Verdict)]
  ) -> [Precedent] {
    rows.map {
      Precedent(
        library: library,
        name: $0.0,
        policy: $0.1,
        changes: $0.2,
        runs: $0.3,
        verdict: $0.4
      )
    }
  }

  private static let lodash = rows(
    "lodash",
    [
      (
        "should debounce a function", debounce(32),
        "0:a 0:b 0:c 128:d 128:e 128:f", "32:c 160:f", .agrees
      ),
      (
        "should not immediately call `func` when `wait` is `0`", debounce(0),
        "0:a 0:b", "0:b", .agrees
      ),
      ("should apply default options", debounce(32), "0:a", "32:a", .agrees),
      (
        "should support a `leading` option", debounce(32, leading: true),
        "0:a 0:b 64:c", "0:a 32:b 64:c", .agrees
      ),
      ("should support a `trailing` option", debounce(32), "0:a", "32:a", .agrees),
      (
        "should support a `maxWait` option", debounce(32, maxWait: 64),
        "0:a 0:b 128:c 128:d", "32:b 160:d", .agrees
      ),
      (
        "should support `maxWait` in a tight loop", debounce(64, maxWait: 128),
        every(10, through: 320), "128:120 256:250 384:320", .agrees
      ),
      (
        "should queue a trailing call for subsequent debounced calls after `maxWait`",
        debounce(200, maxWait: 200), "0:a 190:b 200:c 210:d", "200:b 400:d",
        .differs("the second run is at 410: it waits a whole `wait` again")
      ),
      (
        "should cancel `maxDelayed` when `delayed` is invoked", debounce(32, maxWait: 64),
        "0:a 128:b", "32:a 160:b", .agrees
      ),
      ("should throttle a function", throttle(32), "0:a 0:b 0:c", "0:a 32:c", .agrees),
      (
        "should not trigger a trailing call when invoked once", throttle(32),
        "0:a", "0:a", .agrees
      ),
      (
        "should trigger a second throttled call as soon as possible",
        throttle(128, leading: false), "0:a 192:b", "128:a 320:b", .agrees
      ),
      (
        "should not update `lastCalled`, at the end of the timeout, when `trailing` is `false`",
        first(64), "0:a 0:b 96:c 96:d", "0:a 96:c", .agrees
      ),
      ("should support cancelling delayed calls", debounce(32), "0:a 0:cancel", "", .agrees),
      (
        "should reset `lastCalled` after cancelling", debounce(32, leading: true),
        "0:a 0:cancel 0:b 0:cancel", "0:a 0:b", .agrees
      ),
      ("should support flushing delayed calls", debounce(32), "0:a 0:flush", "0:a", .agrees),
      (
        "should noop `cancel` and `flush` when nothing is queued", debounce(32),
        "0:cancel 0:flush", "", .agrees
      ),
    ]
  )

  private static let underscore = rows(
    "underscore",
    [
      ("debounce", debounce(32), "0:a 0:b 16:c", "48:c", .agrees),
      ("debounce cancel", debounce(32), "0:a 0:cancel", "", .agrees),
      ("debounce asap", first(64), "0:a 0:b 16:c 32:d 48:e 128:f", "0:a 128:f", .agrees),
      (
        "debounce asap cancel", first(64),
        "0:a 0:cancel 0:b 16:c 32:d 48:e", "0:a 0:b", .agrees
      ),
      ("throttle", throttle(32), "0:a 0:b", "0:a 32:b", .agrees),
      ("throttle arguments", throttle(32), "0:a 0:b 64:c", "0:a 32:b 64:c", .agrees),
      ("throttle once", throttle(32), "0:a", "0:a", .agrees),
      ("more throttling", throttle(30), "0:a 0:b 85:c", "0:a 30:b 85:c", .agrees),
      (
        "throttle repeatedly with results", throttle(100),
        "0:a 0:b 50:c 150:d 160:e 230:f", "0:a 100:c 200:e 300:f", .agrees
      ),
      (
        "throttle triggers trailing call when invoked repeatedly", throttle(32),
        every(4, through: 48), "0:0 32:28 64:48", .agrees
      ),
      (
        "throttle does not trigger leading call when leading is set to false",
        throttle(60, leading: false), "0:a 0:b", "60:b", .agrees
      ),
      (
        "more throttle does not trigger leading call when leading is set to false",
        throttle(100, leading: false), "0:a 50:b 60:c 200:d", "100:c 300:d", .agrees
      ),
      (
        "one more throttle with leading: false test", throttle(100, leading: false),
        every(10, through: 350), "100:90 200:190 300:290 400:350", .agrees
      ),
      (
        "throttle does not trigger trailing call when trailing is set to false", first(60),
        "0:a 0:b 0:c 96:d 96:e", "0:a 96:d", .agrees
      ),
      (
        "throttle cancel", throttle(32), "0:a 0:cancel 0:b 0:c", "0:a 32:c",
        .differs("b runs at once: its interval does not survive a cancel")
      ),
      (
        "throttle cancel with leading: false", throttle(32, leading: false),
        "0:a 0:cancel", "", .agrees
      ),
    ]
  )

  private static let rxjs = rows(
    "rxjs",
    [
      (
        "debounceTime: should debounce values by 20 time units", debounce(20),
        "10:a 40:b 50:c 80:d", "30:a 70:c 100:d", .agrees
      ),
      (
        "debounceTime: should delay all element by the specified time", debounce(50),
        "10:a 100:b 170:c", "60:a 150:b 220:c", .agrees
      ),
      (
        "debounceTime: should debounce and delay element by the specified time", debounce(50),
        "10:a 40:b 40:c 190:d", "90:c 240:d", .agrees
      ),
      (
        "debounceTime: should debounce all elements while source emits within given time",
        debounce(40), every(30, from: 20, through: 230) + " 250:flush", "250:230", .agrees
      ),
      (
        "debounceTime: should debounce all element while source emits within given time until "
          + "raises error",
        debounce(40), every(30, from: 20, through: 230) + " 250:flush", "250:230",
        .differs("what is pending is dropped by an error")
      ),
      (
        "debounceTime: should allow unsubscribing early and explicitly", debounce(20),
        "20:a 50:b 60:c 70:cancel", "40:a", .agrees
      ),
      (
        "throttleTime: should immediately emit the first value in each time window", first(50),
        "10:a 30:x 50:y 100:b 140:x 160:c 170:x", "10:a 100:b",
        .differs("c at 160 passes: a window is not prolonged by what it drops")
      ),
      (
        "throttleTime: should simply mirror the source if values are not emitted often enough",
        first(50), "10:a 100:b 160:c", "10:a 100:b 160:c", .agrees
      ),
      (
        "throttleTime { leading: true, trailing: true }", throttle(40),
        "10:a 30:x 40:y 100:b 130:x 160:c 170:d 180:e 190:f",
        "10:a 50:y 100:b 140:x 180:d 220:f",
        .differs("c at 160 passes, 20 after the run before it")
      ),
      (
        "throttleTime { leading: false, trailing: true }", throttle(40, leading: false),
        "10:a 30:x 40:y 100:b 130:x 160:c 170:d 180:e 190:f", "50:y 140:x 180:d 220:f",
        .differs("the last window begins with c and ends at 200")
      ),
    ]
  )

  private static let kotlin = rows(
    "Kotlin Flow",
    [
      (
        "testBasic", debounce(1000), "0:A 1500:B 2000:C 2250:D 4250:E 4250:flush",
        "1000:A 3250:D 4250:E", .agrees
      ),
      ("testScalar", debounce(1000), "0:1 0:2 0:3 0:flush", "0:3", .agrees),
      (
        "testPace", debounce(100), every(99, through: 891) + " 990:a 1091:b 1192:c 1293:flush",
        "1090:a 1191:b 1292:c", .agrees
      ),
      (
        "testDebounceSelectorBasic", debounce(1000),
        "0:1@0 90:2 180:3 1190:4 2200:5 2200:flush", "0:1 1180:3 2190:4 2200:5", .agrees
      ),
      (
        "testDebounceDurationSelectorBasic", debounce(1000),
        "0:A 1500:B 2000:C@0 2250:D 4250:E 4250:flush", "1000:A 2000:C 3250:D 4250:E", .agrees
      ),
      (
        "testZeroDebounceTime", debounce(0), "0:A 0:B 0:C", "0:C",
        .differs("every value passes: a delay of zero is no debounce")
      ),
      (
        "testUpstreamErrorDebounceNotTriggered", debounce(1000), "0:1 0:flush", "0:1",
        .differs("what is pending is dropped by an error")
      ),
    ]
  )

  private static let reactiveSwift = rows(
    "ReactiveSwift",
    [
      (
        "throttle: should send values on the given scheduler at no less than the interval",
        throttle(1000), "0:0 0:1 0:2 4500:3 4500:4 4500:5", "0:0 1000:2 4500:3 5500:5", .agrees
      ),
      (
        "throttle: should schedule completion immediately", throttle(1000),
        "0:0 0:1 0:flush", "0:0 0:1",
        .differs("what is pending is dropped by the completion")
      ),
      (
        "debounce: should send values on the given scheduler once the interval has passed since "
          + "the last value was sent",
        debounce(1000), "0:0 0:1 0:2 4500:3 4500:4 4500:5", "1000:2 5500:5", .agrees
      ),
      (
        "debounce discarding the latest value when terminated: should schedule completion "
          + "immediately",
        debounce(1000), "0:0 0:1 0:flush", "0:1",
        .differs("what is pending is dropped by the completion")
      ),
    ]
  )

  private static let asyncAlgorithms = rows(
    "swift-async-algorithms",
    [
      (
        "test_delayingValues", debounce(3), "0:a 1:b 2:c 3:d 8:e 12:f 14:g", "6:d 11:e 17:g",
        .agrees
      ),
      (
        "test_delayingValues_dangling_last", debounce(3),
        "0:a 1:b 2:c 3:d 8:e 12:f 14:g 16:flush", "6:d 11:e 16:g",
        .differs("the last value is lost when the sequence ends before its deadline")
      ),
      (
        "test_finishDoesntDebounce", debounce(3), "0:a 1:flush", "1:a",
        .differs("the last value is lost")
      ),
      (
        "test_throwDoesntDebounce", debounce(3), "0:a 1:flush", "1:a",
        .differs("what is pending is dropped by an error")
      ),
      ("test_noValues", debounce(3), "4:flush", "", .agrees),
    ]
  )
}
