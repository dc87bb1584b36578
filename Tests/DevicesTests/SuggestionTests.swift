// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Testing
import Values

struct SuggestionTests {
  @Test(arguments: [
    ("brigthness", "brightness"), ("BRIGHTNESS", "brightness"), ("colour", "color"),
    ("desklamp", nil), ("x", nil), (String(repeating: "b", count: 5000), nil),
  ])
  func `a suggestion differs in at most a third of its letters`(
    word: String,
    candidate: String?
  ) {
    #expect(Suggestion.nearest(to: word, in: ["brightness", "color", "power"]) == candidate)
  }

  @Test(arguments: [
    ("living-room-celing-lmp-north-windw", "living-room-ceiling-lamp-north-window"),
    ("living-room-cxxlxng-lxmp-nxrth-wixdow", nil),
  ])
  func `in a long word at most three letters may be wrong`(word: String, candidate: String?) {
    let names = ["living-room-ceiling-lamp-north-window", "kitchen"]
    #expect(Suggestion.nearest(to: word, in: names) == candidate)
  }

  @Test func `the nearest word is the one that a complete table finds`() {
    var random = SplitMix(state: 3)
    for _ in 0..<600 {
      let word = random.word()
      let candidates = (0..<6).map { _ in random.changed(word) }
      let found = Suggestion.nearest(to: word, in: candidates)

      let allowed = min(max(1, word.count / 3), 3, word.count - 1)
      let distances = candidates.map { $0 == word ? Int.max : tableDistance(word, $0) }
      let least = distances.min() ?? .max
      if least <= allowed {
        #expect(found == distances.firstIndex(of: least).map { candidates[$0] })
      } else {
        #expect(found == nil || found?.hasPrefix(word) == true)
      }
    }
  }

  @Test(arguments: [
    (0..<10_000).map { "living-room-ceiling-lamp-number-\($0)-beside-the-northern-window" },
    (0..<10_000).map { "\($0)-ceiling-lamp-beside-the-northern-window-of-the-room-\($0)" },
    (0..<10_000).map { number in
      var random = SplitMix(state: UInt64(number))
      return String((0..<64).map { _ in "abcdefgh".randomElement(using: &random) ?? "a" })
    },
  ])
  func `a search among 10,000 long names computes a bounded part of the tables`(names: [String]) {
    let word = "x-ceiling-lamp-beside-the-northern-windows-of-the-same-room-y"
    #expect(Suggestion.search(for: word, in: names).cells <= Suggestion.cellLimit + 80 * 7)
  }

  @Test func `words of other lengths are not compared at all`() {
    let names = (0..<10_000).map { "lamp-\($0)" }
    let search = Suggestion.search(for: String(repeating: "x", count: 64), in: names)
    #expect(search.cells == 0)
    #expect(search.word == nil)
  }

  @Test func `one search a second is made, and a repeated question has the same answer`() {
    let registry = Registry([Device(id: "lamp", name: "", properties: [Property.of(.boolean)])])
    var limiter = SuggestionLimiter()
    func asked(_ id: String, at milliseconds: UInt64) -> String {
      let now = Moment(nanoseconds: milliseconds * 1_000_000)
      let error = ValidationError.unknownDevice(id, suggestion: nil)
      return limiter.suggesting(error, from: registry, at: now).description
    }

    #expect(asked("lmp", at: 5_000) == "no device 'lmp'; did you mean 'lamp'?")
    #expect(asked("lap", at: 5_999) == "no device 'lap'")
    #expect(asked("lmp", at: 5_999) == "no device 'lmp'; did you mean 'lamp'?")
    #expect(limiter.searches == 1)
    #expect(asked("lap", at: 6_000) == "no device 'lap'; did you mean 'lamp'?")
    #expect(limiter.searches == 2)
    for number in 0..<10_000 { _ = asked("x\(number)", at: 6_000 + UInt64(number)) }
    #expect(limiter.searches == 11)
  }

  @Test func `other errors need no search`() {
    let registry = Registry([])
    var limiter = SuggestionLimiter()
    let error = ValidationError.noBase
    #expect(limiter.suggesting(error, from: registry, at: .zero) == error)
    #expect(limiter.searches == 0)
  }

  @Test(arguments: [("powr", #"; did you mean "power"?"#), ("zzz", "")])
  func `a hint follows a message or is empty`(word: String, hint: String) {
    #expect(Suggestion.hint(for: word, in: ["color", "power"]) == hint)
  }

  @Test func `an excerpt is short and cannot control a terminal`() {
    #expect(Excerpt.of("a\u{1B}[2J\n\u{202E}é") == "a\\u{1b}[2J\\n\\u{202e}é")
    #expect(
      Excerpt.of(String(repeating: "é", count: 61)) == String(repeating: "é", count: 60) + "…"
    )
  }

  @Test(arguments: [("21,5", "21.5"), (" 1,5 ", "1.5"), ("1,2,3", nil), ("x,5", nil), ("7", nil)])
  func `a decimal comma suggests a decimal point`(text: String, number: String?) {
    #expect(NumberText.suggestion(for: text) == number)
  }
}

/// The Damerau-Levenshtein distance by its whole table.
private func tableDistance(_ left: String, _ right: String) -> Int {
  let (left, right) = (Array(left), Array(right))
  var table = [Array(0...right.count)]
  for (row, a) in left.enumerated() {
    table.append([row + 1])
    for (column, b) in right.enumerated() {
      var cost = min(table[row + 1][column], table[row][column + 1]) + 1
      cost = min(cost, table[row][column] + (a == b ? 0 : 1))
      if row > 0, column > 0, a == right[column - 1], left[row - 1] == b {
        cost = min(cost, table[row - 1][column - 1] + 1)
      }
      table[row + 1].append(cost)
    }
  }
  return table[left.count][right.count]
}

/// Random words from few letters, which repeat themselves often.
private struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  mutating func word() -> String {
    String((0..<Int.random(in: 2...24, using: &self)).map { _ in letter() })
  }

  mutating func changed(_ word: String) -> String {
    var letters = Array(word)
    for _ in 0..<Int.random(in: 0...6, using: &self) {
      let place = Int.random(in: 0...letters.count, using: &self)
      switch Int.random(in: 0..<4, using: &self) {
      case 0: letters.insert(letter(), at: place)
      case 1: if place < letters.count { letters.remove(at: place) }
      case 2: if place < letters.count { letters[place] = letter() }
      default: if place + 1 < letters.count { letters.swapAt(place, place + 1) }
      }
    }
    return String(letters)
  }

  private mutating func letter() -> Character { "abc".randomElement(using: &self) ?? "a" }
}
