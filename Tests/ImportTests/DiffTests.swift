// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import Import
import Testing

/// Differences in the format of `diff -u`.
struct DiffTests {
  @Test(arguments: [
    (nil, "a\nb\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"),
    ("a\nb\n", "a\nb\n", ""),
    ("a\nb\nc\n", "a\nx\nc\n", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"),
    (
      "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n",
      "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -9,4 +10,3 @@\n 9\n 10\n 11\n-12\n"
    ),
  ])
  func `changed lines have three lines of context`(
    old: String?,
    new: String,
    expected: String
  ) {
    #expect(UnifiedDiff.text(old: old, new: new, path: "f") == expected)
  }
}
