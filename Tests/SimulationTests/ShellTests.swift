// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import TestBroker
import Testing

/// What people run in a shell: targets of the Makefile with ARGS, and pages of the manual.
@Suite(.blocking) struct ShellTests {
  /// The project's folder.
  private static let root = #filePath.split(separator: "/", omittingEmptySubsequences: false)
    .dropLast(3).joined(separator: "/")

  /// Runs a script for sh, with arguments; returns its output and exit code.
  private static func sh(
    _ script: String,
    _ arguments: String...,
    environment: [String: String]? = nil
  ) throws -> (output: String, code: Int32) {
    let folder = try TemporaryFolder.make("shell-test")
    defer { TemporaryFolder.remove(folder) }
    let process = try SpawnedProcess(
      arguments: ["/bin/sh", "-c", script, "sh"] + arguments,
      environment: environment,
      output: .file(folder + "/output"),
      errors: .file(folder + "/errors")
    )
    guard case .exited(let code)? = process.wait(milliseconds: 60_000) else {
      process.signal(SIGKILL)
      return ("", -1)
    }
    return (TextFile.read(folder + "/output") ?? "", code)
  }

  /// Prints the words that the recipe of `make run` would pass to the program, each in brackets.
  private static let words = """
    unset MAKEFLAGS MFLAGS MAKELEVEL ARGS
    cd "$1"
    recipe=$(make -n run ARGS="$2" | tail -n 1) || exit
    eval "set -- ${recipe#*settle run}"
    [ $# = 0 ] || printf '[%s]' "$@"
    """

  @Test(arguments: [
    ("", ""), ("--keep", "[--keep]"), ("--script 'my file'", "[--script][my file]"),
    (#"a\ b "c d""#, "[a b][c d]"), ("--key $HOME;touch", "[--key][$HOME;touch]"),
    ("* >out | `id` $(id) &", "[*][>out][|][`id`][$(id)][&]"), (#"it\'s #1"#, "[it's][#1]"),
    ("''", "[]"),
  ])
  func `make passes the words of ARGS to the program as they are`(
    text: String,
    words: String
  ) throws {
    #expect(try Self.sh(Self.words, Self.root, text) == (words, 0))
  }

  @Test func `a quote in ARGS without its end is an error of make`() throws {
    let run = try Self.sh("cd \"$1\" && make -n run ARGS=\"--script 'my\"", Self.root)
    #expect(run.code == 2)
  }

  @Test(arguments: ["set", "simulate"])
  func `on a terminal man shows a page of the manual`(command: String) throws {
    let folder = try TemporaryFolder.make("manual-test")
    defer { TemporaryFolder.remove(folder) }
    let man = "#!/bin/sh\nread -r line\necho \"man $*: $line\"\n"
    try TextFile.write(man, to: folder + "/man")
    try #require(unsafe chmod(folder + "/man", 0o700) == 0)
    let show = "\(BuiltProgram.path("settle")) manual \(command)"
    func run(_ script: String, path: String) throws -> String {
      let run = try Self.sh(script, environment: ["PATH": path, "SHELL": "/bin/sh"])
      #expect(run.code == 0)
      return run.output
    }
    let terminal = "exec /usr/bin/script -qec '\(show)' /dev/null"
    let page = ".TH SETTLE\\-\(command.uppercased()) 1"
    #expect(try run(terminal, path: folder).contains("man -l -: \(page)"))
    #expect(try run(terminal, path: "/none").hasPrefix("OVERVIEW: "))
    #expect(try run("exec " + show, path: folder).hasPrefix(page))
  }
}
