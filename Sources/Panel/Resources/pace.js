// Settle
// SPDX-License-Identifier: Apache-2.0

// When to draw: with the next frame, or, while much changes at once, at the next beat. Scrolling stays smooth
// then, because the frames between two beats only move what was drawn.

/** The time between two beats, in milliseconds. */
const BEAT = 125;
/** The page is busy if it draws more tiles than this in one beat. */
const CROWD = 12;
/** After this time without a busy beat, things move again at each frame. */
const CALM = 3000;

export class Pace {
  /** Sets `data-busy` on `node` while the page is busy. */
  constructor(node) {
    this.node = node;
    this.beat = 0;
    this.drawn = 0;
    this.calmTimer = 0;
  }

  get isBusy() { return this.calmTimer !== 0; }

  /** Calls `draw` before a frame: the next one, or the first of the next beat. */
  plan(draw) {
    if (!this.isBusy) return requestAnimationFrame(draw);
    // Beats are at fixed times, so that all that is drawn falls into the same frame.
    // Rounded up: a timer drops fractions, and one that fires before its beat would have two draws in it.
    setTimeout(() => requestAnimationFrame(draw), Math.ceil(BEAT - (performance.now() % BEAT)));
  }

  /** Counts tiles that were drawn. */
  count(tiles, now) {
    const beat = Math.floor(now / BEAT);
    if (beat !== this.beat) this.drawn = 0;
    this.beat = beat;
    this.drawn += tiles;
    if (this.drawn <= CROWD) return;
    clearTimeout(this.calmTimer);
    this.node.toggleAttribute("data-busy", true);
    this.calmTimer = setTimeout(() => {
      this.calmTimer = 0;
      this.node.toggleAttribute("data-busy", false);
    }, CALM);
  }
}
