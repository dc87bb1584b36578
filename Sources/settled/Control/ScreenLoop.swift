// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Glibc
import LastOut
import Screen

/// Waits for keys, replies, signals and the clock, and passes them to the screen.
struct ScreenLoop: ~Copyable {
  private let terminal: CursesTerminal
  private let signals = SignalInbox()
  private let socket: String?
  private var client: ControlClient?
  private var screen: ControlScreen
  private var mustRedraw = false

  /// `client` is the first connection; later ones are made to the same socket.
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

  /// Returns when the user quits or the terminal is gone.
  mutating func run() {
    let renderer = ScreenRenderer(glyphs: terminal.glyphs)
    while !screen.isDone {
      connectIfNeeded()
      send()
      let now = Self.now()
      terminal.draw(renderer.grid(of: screen, at: now), everything: mustRedraw)
      mustRedraw = false
      wait(until: screen.nextTick(after: now))
      screen.advance(to: Self.now())
    }
    terminal.leave()
  }

  private mutating func connectIfNeeded() {
    guard screen.link.shouldConnect(at: Self.now()) else { return }
    do throws(ClientError) {
      client = try ControlClient(path: SocketPath.find(named: socket))
      screen.connected(at: Self.now())
    } catch {
      screen.disconnected(error.description, at: Self.now())
    }
  }

  private mutating func send() {
    for request in screen.dequeueRequests() {
      do throws(ClientError) {
        try client?.send(request)
      } catch {
        return disconnect(error)
      }
    }
  }

  private mutating func disconnect(_ error: ClientError) {
    client = nil
    screen.disconnected(error.description, at: Self.now())
  }

  private mutating func wait(until moment: Moment) {
    let left = Self.now().duration(to: moment).wholeNanoseconds
    let milliseconds = Int32(clamping: (max(0, left) + 999_999) / 1_000_000)
    let readable = Int16(POLLIN)
    // poll skips a descriptor of -1.
    var entries = [
      pollfd(fd: STDIN_FILENO, events: readable, revents: 0),
      pollfd(fd: signals.descriptor, events: readable, revents: 0),
      pollfd(fd: client?.descriptor ?? -1, events: readable, revents: 0),
    ]
    guard unsafe poll(&entries, nfds_t(entries.count), milliseconds) > 0 else { return }
    if entries[2].revents != 0 { receive() }
    // Before the signals: keys typed before Ctrl-Z are not for the shell.
    if entries[0].revents & readable != 0 {
      for key in terminal.keys() {
        if key == .redraw { mustRedraw = true }
        screen.press(key, at: Self.now())
      }
    } else if entries[0].revents != 0 {
      screen.quit()  // The terminal is gone.
    }
    if entries[1].revents != 0 { for number in signals.dequeue() { handle(number) } }
  }

  private mutating func receive() {
    do throws(ClientError) {
      guard let replies = try client?.available() else { return }
      let now = Self.now()
      for reply in replies { screen.receive(reply, at: now) }
    } catch {
      disconnect(error)
    }
  }

  private mutating func handle(_ signal: Int32) {
    switch signal {
    case SIGWINCH, SIGCONT:
      let size = terminal.size
      terminal.resize(to: size)
      screen.resize(to: size)
      mustRedraw = true
    case SIGTSTP:
      terminal.leave()
      // SIGTSTP is blocked, so SIGSTOP stops the program; after SIGCONT it goes on here.
      raise(SIGSTOP)
      mustRedraw = true
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
