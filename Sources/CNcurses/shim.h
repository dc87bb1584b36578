// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

// Characters beyond ASCII: without it get_wch is not declared.
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

// Takes the terminal over, if its cursor can be placed; the streams are mutable globals, and tigetstr
// answers with a cast -1.
static inline int settle_curses_open(void) {
  if (newterm(NULL, stdout, stdin) == NULL) return 0;
  const char *placing = tigetstr((char *)"cup");
  if (placing != (const char *)-1 && placing != NULL) return 1;
  endwin();
  return 0;
}

// stdscr is a mutable global, too, and keypad and the like are functions of it.
static inline void settle_curses_prepare(void) {
  cbreak();
  noecho();
  nonl();
  noqiflush();  // What was typed before Ctrl-Z is there after fg.
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  set_escdelay(25);
  curs_set(0);
}

// Attributes are casts in macros, and the color pair is one of them.
static inline void settle_curses_put(
    int row, int column, const char *text, int pair, int bold, int faint, int reverse) {
  attr_t attributes = A_NORMAL;
  if (bold) attributes |= A_BOLD;
  if (faint) attributes |= A_DIM;
  if (reverse) attributes |= A_REVERSE;
  wattr_set(stdscr, attributes, (short)pair, NULL);
  mvwaddstr(stdscr, row, column, text);
}

// Shows the written cells; with force it redraws the whole screen and sets up the arrow keys again,
// which ncurses would do only when the first of them has been read.
static inline void settle_curses_show(int force) {
  if (force) clearok(curscr, TRUE);
  wrefresh(stdscr);
  if (force) keypad(stdscr, TRUE);
}

// The next key that has come: 1 a key code, 0 a character, -1 none.
static inline int settle_curses_key(unsigned int *key) {
  wint_t code = 0;
  int kind = wget_wch(stdscr, &code);
  *key = (unsigned int)code;
  return kind == KEY_CODE_YES ? 1 : kind == OK ? 0 : -1;
}
