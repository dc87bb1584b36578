// Settle
// SPDX-License-Identifier: Apache-2.0

/// A key that a person pressed.
package enum ScreenKey: Hashable, Sendable {
  case up, down, left, right
  /// With Shift: ten steps at once.
  case farLeft, farRight
  case pageUp, pageDown, home, end
  case enter, escape, backspace
  /// Ctrl-L: the screen is to be drawn anew, which is up to whoever draws.
  case redraw
  case character(Character)
}
