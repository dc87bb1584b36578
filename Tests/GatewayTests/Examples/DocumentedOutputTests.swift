// Settle
// SPDX-License-Identifier: Apache-2.0

import Testing

/// The tools of the tests that run documented examples.
@Suite struct DocumentedOutputTests {
  private static let outputs: [(documented: [String], actual: String, matches: Bool)] = [
    ([], "anything", true),
    (["a b"], "ab\n", true),
    (["a", "b"], "a\n b\n", true),
    (["ab"], "abc", false),
    (["ab"], "b", false),
    (["a…"], "abc", true),
    (["a…c"], "abc", true),
    (["a…c"], "abcd", false),
    (["a…d"], "abc", false),
    ([#"{"id":"01M7","value":40}"#], #"{"id":"01XY","value":40}"#, true),
    ([#"{"id":"01M7","value":40}"#], #"{"id":"01XY","value":41}"#, false),
    ([#"{"age_ms":5230,"a":1}"#], #"{"age_ms":7,"a":1}"#, true),
    ([#"{"at":420}"#], #"{"at":421}"#, false),
  ]

  @Test(arguments: outputs)
  func `documented output matches the output of a run`(
    documented: [String],
    actual: String,
    matches: Bool
  ) {
    #expect(DocumentedOutput(documented).matches(actual) == matches)
  }

  @Test(arguments: [
    (["retry: 1"], "retry: 1\n\nid: 5\n", true),
    (
      ["retry: 1", "id: 6", #"data: {"a":1,…}"#], "retry: 1\n\nid: 5\ndata: {\"a\":1,\"b\":2}\n",
      true
    ),
    (["retry: 1"], "retr", false),
    (["retry: 1", "data: x…}"], "retry: 1\nid: 5\n", false),
  ])
  func `documented output may be the beginning of more`(
    documented: [String],
    actual: String,
    matches: Bool
  ) {
    #expect(DocumentedOutput(documented).isBeginning(of: actual) == matches)
  }

  @Test func `commands are found in every block that a shell would read`() {
    let text = """
      # Title

      ```sh
      # a comment
      settle get                # every property
      settle set a/b '#ff0000'
      ```

      ```yaml
      settle: no
      ```

      ```console
      $ settle check
      OK: 1 device
      $ settle pipe <<'END'
      {"key":"a/b","set":1}
      END
      {"phase":"accepted"}
      ```
      """
    #expect(
      ExampleCollection.examples(inDocument: "x.md", text: text) == [
        DocumentedExample(place: "x.md:5", line: "settle get"),
        DocumentedExample(place: "x.md:6", line: "settle set a/b '#ff0000'"),
        DocumentedExample(place: "x.md:14", line: "settle check", output: ["OK: 1 device"]),
        DocumentedExample(
          place: "x.md:16",
          line: "settle pipe <<'END'\n{\"key\":\"a/b\",\"set\":1}\nEND",
          output: [#"{"phase":"accepted"}"#]
        ),
      ]
    )
  }
}
