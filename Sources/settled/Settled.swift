// Settle
// SPDX-License-Identifier: Apache-2.0

@main
struct Settled {
  static func main() { print("settled") }
}
