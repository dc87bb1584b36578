// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOutTesting
import Testing

@Suite struct TimelineTests {
  @Test func `both fixture files are complete`() throws {
    #expect(try Timeline.read("timelines").count == 659)
    #expect(try Timeline.read("reentrancy").count == 90)
  }

  @Test(arguments: try Timeline.read("timelines"))
  func `values run at the times of the timeline`(timeline: Timeline) {
    #expect(timeline.play() == timeline.expected)
    #expect(timeline.playClosures() == timeline.expected)
  }

  @Test(arguments: try Timeline.read("reentrancy"))
  func `a run may touch the queue, and a change may carry its own delay`(timeline: Timeline) {
    #expect(timeline.play() == timeline.expected)
    #expect(timeline.playClosures() == timeline.expected)
  }
}
