// Settle
// SPDX-License-Identifier: Apache-2.0

@main
struct Settle {
  static func main() { print("settle") }
}
