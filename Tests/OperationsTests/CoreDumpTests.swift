// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import Testing

/// Whether the memory of a process can end up in a file.
struct CoreDumpTests {
  @Test func `a process that disables core dumps has none`() async {
    // In a separate process, because nothing enables them again.
    await #expect(processExitsWith: .success) {
      #expect(CoreDumps.areEnabled)
      CoreDumps.disable()
      #expect(!CoreDumps.areEnabled)
      // Its own figures stay readable.
      #expect(ProcessFigures().openDescriptors != nil)
      #expect(ProcessFigures().residentBytes != nil)
    }
  }
}
