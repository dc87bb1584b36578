// Settle
// SPDX-License-Identifier: Apache-2.0

import Operations
import Testing

struct FileTrustTests {
  private static let user: UInt32 = 1000

  @Test(
    arguments: [
      (1000, 0o100_600, nil), (1000, 0o400, nil), (1000, 0o640, .openToOthers(mode: 0o640)),
      (1000, 0o604, .openToOthers(mode: 0o604)), (0, 0o600, .foreignOwner(0, expected: 1000)),
      (1001, 0o600, .foreignOwner(1001, expected: 1000)),
    ] as [(UInt32, UInt32, FileTrust.Flaw?)]
  )
  func `a file of a user is for nobody else`(owner: UInt32, mode: UInt32, flaw: FileTrust.Flaw?) {
    #expect(FileTrust(owner: owner, mode: mode).flaw(for: Self.user) == flaw)
  }

  @Test(
    arguments: [
      (1000, 0o600, nil), (0, 0o600, nil), (0, 0o100_640, nil), (1000, 0o440, nil),
      (0, 0o660, .openToOthers(mode: 0o660)), (0, 0o644, .openToOthers(mode: 0o644)),
      (1001, 0o600, .foreignOwner(1001, expected: 1000)),
    ] as [(UInt32, UInt32, FileTrust.Flaw?)]
  )
  func `a provided file may be root's, and its group may read it`(
    owner: UInt32,
    mode: UInt32,
    flaw: FileTrust.Flaw?
  ) {
    #expect(FileTrust(owner: owner, mode: mode).flawOfProvided(for: Self.user) == flaw)
  }

  @Test func `root may use a file of a service's user, but not one that others can read`() {
    #expect(FileTrust(owner: Self.user, mode: 0o600).flawOfProvided(for: 0) == nil)
    let open = FileTrust(owner: Self.user, mode: 0o604).flawOfProvided(for: 0)
    #expect(open == .openToOthers(mode: 0o604))
  }
}
