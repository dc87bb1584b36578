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

  @Test(arguments: [
    ("fleet/$1/set", "fleet/7/set", true), ("fleet/$1/set", "fleet/7/get", false),
    ("fleet/$1/set", "fleet/7/8/set", false), ("fleet/$1/set", "fleet//set", false),
    ("a/lamp-$1/set", "a/lamp-7/set", true), ("a/lamp-$1/set", "a/plug-7/set", false),
    ("a/lamp-$1/set", "a/lamp-/set", false), ("a/$1-$2", "a/x-y", true), ("a/b", "a/b", true),
  ])
  func `a template sets the topics that its placeholders can make`(
    pattern: String,
    topic: String,
    isSet: Bool
  ) {
    let property = Property(
      id: "power",
      kind: .boolean,
      policy: .standard,
      command: CommandEndpoint(
        topic: TemplateMark.marked(pattern),
        payload: PayloadTemplate(.string("$value"))
      )
    )
    let template = DeviceTemplate(Device(id: "d", name: "", properties: [property]))
    #expect(template.isSet(by: topic) == isSet)
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
