// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import GatewayCore
import JSON
import Operations

/// All devices, the scenes and the broker, as `GET /v1/devices` lists them; each device as it is when written.
///
/// A device's number stays valid after a reload, even if the device is gone.
struct DeviceListing: PartialDocument {
  private let documents: DeviceDocuments
  private let context: GatewayContext
  private var rest: ArraySlice<Int>
  private var hasBegun = false

  init(_ documents: DeviceDocuments, _ context: GatewayContext) {
    self.documents = documents
    self.context = context
    rest = context.registry.deviceNumbers[...]
  }

  mutating func appendPart(to bytes: inout [UInt8]) -> Bool {
    if !hasBegun { bytes.append(contentsOf: #"{"devices":["#.utf8) }
    guard let number = rest.popFirst() else {
      let broker = JSONValue.object(["connected": .boolean(context.core.isConnected)])
      bytes.append(contentsOf: #"],"scenes":"#.utf8)
      let scenes = context.registry.scenes.map { JSONValue.object(["id": .string($0.id)]) }
      JSONWriter.append(.array(scenes), to: &bytes)
      bytes.append(contentsOf: #","broker":"#.utf8)
      JSONWriter.append(broker, to: &bytes)
      bytes.append(contentsOf: "}\n".utf8)
      return false
    }
    if hasBegun { bytes.append(UInt8(ascii: ",")) }
    hasBegun = true
    JSONWriter.append(documents.deviceObject(number, at: EventLoop.now()), to: &bytes)
    return true
  }
}
