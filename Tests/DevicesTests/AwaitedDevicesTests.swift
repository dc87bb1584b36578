// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Testing
import Values

/// Which keys a device may have that appears later.
struct AwaitedDevicesTests {
  private func awaited(_ id: String) -> AwaitedDevices {
    let property = Property(
      id: "power",
      kind: .boolean,
      policy: .standard,
      command: CommandEndpoint(topic: "t", payload: PayloadTemplate(.string("$value")))
    )
    let device = Device(id: TemplateMark.marked(id), name: "", properties: [property])
    return AwaitedDevices([DeviceTemplate(device)])
  }

  @Test(arguments: [
    ("node-$1", "node-7/power", true), ("node-$1", "node-/power", false),
    ("node-$1", "node-7/level", false), ("node-$1", "nod-7/power", false),
    ("$1-$2", "a-b/power", true), ("$1-$2", "-b/power", false), ("$1-$2", "a-/power", false),
    ("x$1-y", "xa-y/power", true), ("x$1-y", "x-y/power", false), ("$1", "a/power", true),
    ("node-$1", "node-7", false),
  ])
  func `a key is awaited if a template can make it`(id: String, key: String, isAwaited: Bool) {
    #expect(awaited(id).awaits(key) == isAwaited)
  }

  @Test func `without templates nothing is awaited`() {
    #expect(!AwaitedDevices().awaits("node-7/power"))
  }

  @Test(arguments: [
    ("$n-x", true), ("a/$n/b", true), ("$n", true), ("$name", false), ("$n_x", false),
    ("$n7", false), ("$$n", false), ("$12", false), ("$1", true),
  ])
  func `a placeholder counts only where no word goes on`(text: String, isMarked: Bool) {
    #expect((TemplateMark.marked(text) != text) == isMarked)
    #expect(TemplateMark.unmarked(TemplateMark.marked(text)) == text)
  }
}
