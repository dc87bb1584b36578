// Settle
// SPDX-License-Identifier: Apache-2.0

// Finds texts that are drawn over each other or below a thumb, and texts that are cut off without a sign of it. Run inside
// the page; returns a list of mistakes, in words.

const problems = [];
const modal = document.querySelector("dialog:modal");
const roots = modal ? [modal] : [...document.querySelectorAll(".tile, .bar-inner, #sums, #pending, .scene-row, .area > h2")];
/** How far boxes may reach into each other: what a font leaves free above and below its letters. */
const SLACK = 2;

const isShown = (node) => {
  const style = getComputedStyle(node);
  return style.visibility !== "hidden" && !node.closest("[hidden], .visually-hidden, .skip, option") && style.clipPath !== "inset(50%)";
};

/** The part of a box that the elements around it let through. */
const clipped = (box, node, root) => {
  let { left, top, right, bottom } = box;
  for (let at = node; at && at !== root.parentElement; at = at.parentElement) {
    const style = getComputedStyle(at);
    if (Number(style.opacity) === 0) return null;
    if (style.overflowX === "visible" && style.contain === "none") continue;
    const edge = at.getBoundingClientRect();
    [left, top, right, bottom] = [Math.max(left, edge.left), Math.max(top, edge.top), Math.min(right, edge.right), Math.min(bottom, edge.bottom)];
  }
  return right - left > 0.5 && bottom - top > 0.5 ? { left, top, right, bottom } : null;
};

/** Whether a text that is cut off says so, or can be scrolled. */
const saysSo = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const style = getComputedStyle(at);
    if (style.textOverflow === "ellipsis" || style.webkitLineClamp !== "none" || style.overflowX === "auto") return true;
    if (at.matches(".tile, dialog")) return false;
  }
  return false;
};

const where = (node) => `${node.closest("[data-device]")?.dataset.device ?? node.closest("[data-key]")?.dataset.key ?? node.closest("[id]")?.id}: `;

for (const root of roots) {
  if (!isShown(root) || root.getBoundingClientRect().width === 0) continue;
  const boxes = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    const node = text.parentElement;
    if (!text.data.trim() || !isShown(node) || node.matches("title, option, select")) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    for (const rect of range.getClientRects()) {
      if (rect.width === 0) continue;
      const box = clipped(rect, node, root);
      if (!box) continue;
      // The letters themselves: a line is higher than they are.
      const height = Math.min(rect.height, parseFloat(getComputedStyle(node).fontSize) * 1.1);
      const middle = (rect.top + rect.bottom) / 2;
      const letters = { ...box, top: Math.max(box.top, middle - height / 2), bottom: Math.min(box.bottom, middle + height / 2) };
      if (letters.bottom - letters.top <= 0.5) continue;
      boxes.push({ ...letters, node, text: text.data });
      const isWide = box.right - box.left < rect.width - 1.5;
      const isHigh = letters.bottom - letters.top < height * 0.8;
      if ((isWide && !saysSo(node)) || isHigh) problems.push(`${where(node)}cut off: “${text.data}”`);
    }
  }
  for (const node of root.querySelectorAll("input:not([type=range], [type=radio], [type=color], [type=checkbox]), select")) {
    if (isShown(node) && node.offsetParent) boxes.push({ ...node.getBoundingClientRect().toJSON(), node, text: node.value });
  }
  for (const node of root.querySelectorAll(".thick-thumb, .switch-thumb, .tile-icon, .tile-power, .window, .round, .actual")) {
    if (!isShown(node) || !node.offsetParent) continue;
    const box = clipped(node.getBoundingClientRect(), node, root);
    if (box) boxes.push({ ...box, node, text: `(${node.className})` });
  }
  for (const node of root.querySelectorAll(".day")) {
    const box = node.getBoundingClientRect();
    if (box.width > 0) boxes.push({ ...box.toJSON(), node, text: "(day)" });
  }
  boxes.forEach((one, place) => {
    for (const other of boxes.slice(place + 1)) {
      if (one.node.contains(other.node) || other.node.contains(one.node)) continue;
      const isMark = (box) => box.text === "(actual)" || box.text === "(thick-thumb)";
      if (isMark(one) && isMark(other)) continue;
      const [width, height] = [Math.min(one.right, other.right) - Math.max(one.left, other.left), Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top)];
      if (width > SLACK && height > SLACK) problems.push(`${where(one.node)}“${one.text}” and “${other.text}” by ${width.toFixed(0)} × ${height.toFixed(0)}`);
    }
  });
}
return [...new Set(problems)];
