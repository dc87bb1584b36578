// Settle
// SPDX-License-Identifier: Apache-2.0

// Where tiles go: sections side by side, and rows without holes. It uses no DOM.

/** How many columns wide a tile may become to fill a row. */
const WIDEST = 2;

/**
 * The number of columns of each section that has so many tiles. A section is as wide as its tiles, so that small
 * ones share a row; the last in a row also gets the columns that are left, if its tiles can fill them.
 */
export function spansOf(counts, columns) {
  const least = columns > 3 ? 2 : columns;
  const spans = [];
  let used = 0;
  const fill = () => {
    const last = spans.length - 1;
    if (last >= 0 && counts[last] * WIDEST >= spans[last] + columns - used) spans[last] += columns - used;
  };
  for (const count of counts) {
    const span = Math.min(columns, Math.max(count, least));
    if (used + span > columns) {
      fill();
      used = 0;
    }
    spans.push(span);
    used += span;
  }
  fill();
  return spans;
}

/**
 * Rows of about equally many tiles in so many columns: the number of rows, the parts into which the width is
 * divided, and how many of them each tile has. The tiles of a row are equally wide.
 */
export function rowsOf(count, columns) {
  const rows = Math.max(1, Math.ceil(count / columns));
  const few = Math.floor(count / rows);
  const fuller = count - few * rows;
  if (columns > WIDEST * few) return { rows, parts: columns, widths: Array(count).fill(1) };
  const isEven = fuller === 0;
  const parts = isEven ? few : few * (few + 1);
  const widths = Array.from({ length: count }, (_, place) => (isEven ? 1 : place < fuller * (few + 1) ? few : few + 1));
  return { rows, parts: Math.max(1, parts), widths };
}
