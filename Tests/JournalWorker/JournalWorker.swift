// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Journal
import LastOut
import Operations

/// Writes a journal in a process of its own, which a test kills, or to measure it.
///
/// `crash PATH LOG BASE` accepts and sends values as fast as commits allow until it is killed; each
/// line of LOG is a fact: `a KEY N` is about to be accepted, `d KEY N` was reported durable,
/// `f KEY N` is about to be sent and acknowledged. `measure PATH SECONDS RATE` prints what RATE
/// changes a second write.
@main
struct JournalWorker {
  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 5, let number = Int(arguments[3]) ?? Int(arguments[4]) else {
      print("usage: JournalWorker crash PATH LOG BASE | measure PATH SECONDS RATE")
      exit(64)
    }
    if arguments[1] == "crash" {
      try CrashLoad(path: arguments[2], log: arguments[3], base: number).run()
    } else {
      let rate = Int(arguments[4]) ?? 10
      try MeasuredLoad(path: arguments[2], seconds: number, rate: rate).run()
    }
  }
}
