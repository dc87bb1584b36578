// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Glibc
import LastOut
import Screen

/// Waits for keys, replies, signals and the clock, and hands them to the screen.
struct ScreenLoop: ~Copyable {
  private let terminal: CursesTerminal
  private let signals = SignalInbox()
  private let socket: String?
  private var client: ControlClient?
  private var screen: ControlScreen
  private var mustDrawAnew = false

  /// `client` is the first connection; later ones are looked for in the same place.
  init(
    terminal: consuming CursesTerminal,
    client: consuming ControlClient,
    socket: String?,
    filter: String
  ) {
    screen = ControlScreen(name: "control-\(getpid())", size: terminal.size, filter: filter)
    self.terminal = terminal
    self.client = consume client
    self.socket = socket
    screen.connected(at: Self.now())
  }

  /// Returns when the person has had enough, or the terminal is gone.
  mutating func run() {
    let renderer = ScreenRenderer(glyphs: terminal.glyphs)
    while !screen.isDone {
      connectIfWanted()
      send()
      let now = Self.now()
      terminal.draw(renderer.grid(of: screen, at: now), anew: mustDrawAnew)
      mustDrawAnew = false
      wait(until: screen.nextTick(after: now))
      screen.tick(at: Self.now())
    }
    terminal.leave()
  }

  private mutating func connectIfWanted() {
    guard screen.wantsConnection(at: Self.now()) else { return }
    do throws(ClientError) {
      client = try ControlClient(path: SocketPath.find(named: socket))
      screen.connected(at: Self.now())
    } catch {
      screen.disconnected(error.description, at: Self.now())
    }
  }

  private mutating func send() {
    for request in screen.takeRequests() {
      do throws(ClientError) {
        try client?.send(request)
      } catch {
        return lose(error)
      }
    }
  }

  private mutating func lose(_ error: ClientError) {
    client = nil
    screen.disconnected(error.description, at: Self.now())
  }

  private mutating func wait(until moment: Moment) {
    let left = Self.now().duration(to: moment).wholeNanoseconds
    let milliseconds = Int32(clamping: (max(0, left) + 999_999) / 1_000_000)
    let readable = Int16(POLLIN)
    // A descriptor of -1 is passed over.
    var entries = [
      pollfd(fd: STDIN_FILENO, events: readable, revents: 0),
      pollfd(fd: signals.descriptor, events: readable, revents: 0),
      pollfd(fd: client?.descriptor ?? -1, events: readable, revents: 0),
    ]
    guard unsafe poll(&entries, nfds_t(entries.count), milliseconds) > 0 else { return }
    if entries[2].revents != 0 { receive() }
    // Before the signals: what was typed before Ctrl-Z is not for the shell.
    if entries[0].revents & readable != 0 {
      for key in terminal.keys() {
        if key == .redraw { mustDrawAnew = true }
        screen.press(key, at: Self.now())
      }
    } else if entries[0].revents != 0 {
      screen.quit()  // The terminal is gone.
    }
    if entries[1].revents != 0 { for number in signals.take() { handle(number) } }
  }

  private mutating func receive() {
    do throws(ClientError) {
      guard let replies = try client?.available() else { return }
      let now = Self.now()
      for reply in replies { screen.receive(reply, at: now) }
    } catch {
      lose(error)
    }
  }

  private mutating func handle(_ signal: Int32) {
    switch signal {
    case SIGWINCH, SIGCONT:
      let size = terminal.size
      terminal.resize(to: size)
      screen.resize(to: size)
      mustDrawAnew = true
    case SIGTSTP:
      terminal.leave()
      // Blocked itself, so its uncatchable brother stops the program; it goes on here.
      raise(SIGSTOP)
      mustDrawAnew = true
    default: screen.quit()
    }
  }

  private static func now() -> Moment {
    var time = timespec()
    guard unsafe clock_gettime(CLOCK_MONOTONIC, &time) == 0 else {
      preconditionFailure("The monotonic clock cannot be read.")
    }
    return Moment(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
  }
}
