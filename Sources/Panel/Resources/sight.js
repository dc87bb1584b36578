// Settle
// SPDX-License-Identifier: Apache-2.0

// Which tiles are on the page. Tiles are observed only while their section is near, because the browser
// compares each observed element with the page at every frame.

export class Sight {
  /** Calls `show(tile)` for what was drawn first. */
  constructor(show) {
    this.show = show;
    const seen = (entries) => entries.forEach(({ target, isIntersecting }) => target.tile.see(isIntersecting));
    const near = (entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) target.tile.prepare();
      this.show();
    };
    this.seen = new IntersectionObserver(seen);
    // A tile gets its body before it is on the page.
    this.near = new IntersectionObserver(near, { rootMargin: "50% 0px" });
    this.sections = new IntersectionObserver((entries) => this.moved(entries), { rootMargin: "100% 0px" });
  }

  /** Observes these sections, and no others. */
  follow(sections) {
    for (const observer of [this.sections, this.near, this.seen]) observer.disconnect();
    for (const { node, tiles } of sections) {
      node.tiles = tiles;
      this.sections.observe(node);
    }
  }

  moved(entries) {
    for (const { target, isIntersecting } of entries) {
      for (const tile of target.tiles) {
        for (const observer of [this.near, this.seen]) {
          if (isIntersecting) observer.observe(tile.node);
          else observer.unobserve(tile.node);
        }
        if (!isIntersecting) tile.see(false);
      }
    }
  }
}
