// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Glibc

@main
struct Settled {
  static func main() {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.first == "run" {
      do { exit(try RunCommand(arguments: Array(arguments.dropFirst()), calledAs: "settle run").run()) } catch { print(error); exit(64) }
    }
  }
}
