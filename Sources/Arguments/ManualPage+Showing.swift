// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

extension ManualPage {
  /// Prints a page: roff in a pipe; on a terminal what man(1) makes of it, or the help without man.
  package static func show(_ page: String, help: String) -> ExitCode {
    guard isatty(STDOUT_FILENO) == 1 else {
      StandardOutput.show(page)
      return .done
    }
    openInMan(page)
    StandardOutput.show(help)
    return .done
  }

  /// Executes man in place of this process, with the page as its input; returns only on failure.
  private static func openInMan(_ page: String) {
    guard let stream = unsafe tmpfile() else { return }
    let file = unsafe fileno(stream)
    let bytes = Array(page.utf8)
    guard unsafe write(file, bytes, bytes.count) == bytes.count,
      lseek(file, 0, SEEK_SET) == 0, dup2(file, STDIN_FILENO) == STDIN_FILENO
    else { return }
    let words = ["man", "-l", "-"]
    var pointers = unsafe words.map { word in unsafe strdup(word) }
    unsafe pointers.append(nil)
    unsafe execvp("man", pointers)
    for index in unsafe pointers.indices { unsafe free(pointers[index]) }
  }
}
