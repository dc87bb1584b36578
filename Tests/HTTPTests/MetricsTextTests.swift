// Settle
// SPDX-License-Identifier: Apache-2.0

import HTTP
import Testing

@Suite struct MetricsTextTests {
  @Test func `families have help and type, samples their labels`() {
    var text = MetricsText()
    text.family("settle_sent_total", .counter, "Commands\nthat \\ left.")
    text.sample("settle_sent_total", ["device": "a\"b\\c\nd", "x": "y"], 3 as UInt64)
    text.sample("settle_sent_total", [:], 0.25)

    #expect(
      String(decoding: text.bytes, as: UTF8.self) == """
        # HELP settle_sent_total Commands\\nthat \\\\ left.
        # TYPE settle_sent_total counter
        settle_sent_total{device="a\\"b\\\\c\\nd",x="y"} 3
        settle_sent_total 0.25

        """
    )
  }

  @Test func `a histogram counts upward and ends with everything`() {
    var text = MetricsText()
    text.histogram("late", bounds: [0.001, 0.5], counts: [2, 0, 1], sum: 1.5)

    #expect(
      String(decoding: text.bytes, as: UTF8.self) == """
        late_bucket{le="0.001"} 2
        late_bucket{le="0.5"} 2
        late_bucket{le="+Inf"} 3
        late_sum 1.5
        late_count 3

        """
    )
  }
}
