// Settle
// SPDX-License-Identifier: Apache-2.0

import CNcurses
import Control
import Glibc
import LastOut
import Operations
import Screen
import Values

/// The terminal while a full screen is shown on it; there is one at a time.
///
/// It decides nothing: it draws the cells that it is given and returns the keys that were pressed.
/// Call ``leave()`` before the program ends; it restores the terminal.
struct CursesTerminal: ~Copyable {
  /// Why a full screen is not possible.
  struct Failure: Error { let message: String }

  private let hasColor: Bool
  let glyphs: Glyphs

  /// Switches the terminal to a full screen.
  init() throws(Failure) {
    // The locale must be known before the first cell is drawn.
    let isUTF8 = Self.isUTF8()
    try Self.open()
    settle_curses_prepare()
    let isColored = Self.wantsColor && has_colors() && start_color() == OK
    if isColored {
      use_default_colors()
      for color in Style.Color.allCases where color != .plain {
        init_pair(Int16(color.rawValue), Int16(color.rawValue), -1)
      }
    }
    hasColor = isColored
    glyphs = isUTF8 ? .unicode : .ascii
  }

  /// Restores the terminal.
  func leave() { endwin() }

  /// The terminal's size now.
  var size: ScreenSize {
    var size = winsize()
    guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0,
      size.ws_row > 0
    else { return ScreenSize(columns: 80, rows: 24) }
    return ScreenSize(columns: Int(size.ws_col), rows: Int(size.ws_row))
  }

  /// Sets the size of the screen.
  func resize(to size: ScreenSize) { resizeterm(Int32(size.rows), Int32(size.columns)) }

  /// Draws the cells that changed, or all cells if `everything` is set.
  func draw(_ grid: Grid, everything: Bool = false) {
    for row in 0..<grid.size.rows {
      for run in grid.runs(row: row) {
        unsafe settle_curses_put(
          Int32(row),
          Int32(run.column),
          run.text,
          hasColor ? Int32(run.style.color.rawValue) : 0,
          run.style.isBold ? 1 : 0,
          run.style.isFaint ? 1 : 0,
          run.style.isReverse ? 1 : 0
        )
      }
    }
    settle_curses_show(everything ? 1 : 0)
  }

  /// The keys that were pressed; unknown ones are skipped.
  func keys() -> [ScreenKey] {
    var inputs: [KeyInput] = []
    var code: UInt32 = 0
    while true {
      switch unsafe settle_curses_key(&code) {
      case 1: if let key = Self.key(Int32(bitPattern: code)) { inputs.append(.key(key)) }
      case 0: if let scalar = Unicode.Scalar(code) { inputs.append(.scalar(scalar)) }
      default: return KeyInput.keys(inputs)
      }
    }
  }

  private static func key(_ code: Int32) -> ScreenKey? {
    switch code {
    case KEY_UP: .up
    case KEY_DOWN: .down
    case KEY_LEFT: .left
    case KEY_RIGHT: .right
    case KEY_SLEFT: .farLeft
    case KEY_SRIGHT: .farRight
    case KEY_PPAGE: .pageUp
    case KEY_NPAGE: .pageDown
    case KEY_HOME: .home
    case KEY_END: .end
    case KEY_ENTER: .enter
    case KEY_BACKSPACE: .backspace
    default: nil
    }
  }

  /// Whether `NO_COLOR` is not set.
  private static var wantsColor: Bool { (SocketPath.environment("NO_COLOR") ?? "").isEmpty }

  private static func open() throws(Failure) {
    guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else {
      throw Failure(message: "control needs a terminal on standard input and standard output")
    }
    let name = SocketPath.environment("TERM") ?? ""
    guard !name.isEmpty, name != "dumb", settle_curses_open() != 0 else {
      throw Failure(message: unfit(name))
    }
  }

  /// Whether the locale's letters are UTF-8.
  ///
  /// If the named locale is not installed, the C library's own takes its place.
  private static func isUTF8() -> Bool {
    if unsafe setlocale(LC_ALL, "") == nil {
      guard TerminalLocale.isUTF8, unsafe setlocale(LC_CTYPE, "C.UTF-8") != nil else {
        return false
      }
    }
    return unsafe String(cString: nl_langinfo(nl_item(CODESET))) == "UTF-8"
  }

  private static func unfit(_ name: String) -> String {
    let found = name.isEmpty ? "TERM is not set" : "TERM is \"\(Excerpt.visible(name))\""
    return "control needs a terminal that can place its cursor, and \(found)"
  }
}

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
    screen.connected(at: EventLoop.now())
  }

  /// Returns when the user quits or the terminal is gone.
  mutating func run() {
    while !screen.isDone {
      connectIfNeeded()
      send()
      let now = EventLoop.now()
      let grid = ScreenRenderer.grid(of: screen, terminal.glyphs, at: now)
      terminal.draw(grid, everything: mustRedraw)
      mustRedraw = false
      wait(until: screen.nextTick(after: now))
      screen.advance(to: EventLoop.now())
    }
    terminal.leave()
  }

  private mutating func connectIfNeeded() {
    guard screen.link.shouldConnect(at: EventLoop.now()) else { return }
    do throws(ClientError) {
      client = try ControlClient(path: SocketPath.find(named: socket))
      screen.connected(at: EventLoop.now())
    } catch {
      screen.disconnected(error.description, at: EventLoop.now())
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
    screen.disconnected(error.description, at: EventLoop.now())
  }

  private mutating func wait(until moment: Moment) {
    let left = EventLoop.now().duration(to: moment).wholeNanoseconds
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
        screen.press(key, at: EventLoop.now())
      }
    } else if entries[0].revents != 0 {
      screen.quit()  // The terminal is gone.
    }
    if entries[1].revents != 0 { for number in signals.dequeue() { handle(number) } }
  }

  private mutating func receive() {
    do throws(ClientError) {
      guard let replies = try client?.available() else { return }
      let now = EventLoop.now()
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
}
