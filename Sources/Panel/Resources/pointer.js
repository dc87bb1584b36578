// Settle
// SPDX-License-Identifier: Apache-2.0

// Fingers on sliders.

/** The distance in pixels after which a touch counts as a drag. */
const SLACK = 6;

/**
 * Handles pointers on a slider. A touch may start a scroll of the page, so it changes the value only
 * after a horizontal move or when it is lifted.
 */
export function bindPointer(range, key, app, change, follow) {
  let touch = null;
  const on = (name, listener) => range.addEventListener(name, listener);
  on("pointerdown", (event) => {
    touch = event.pointerType === "touch" ? { x: event.clientX, value: null } : null;
    app.hold(key, true);
  });
  on("pointermove", (event) => {
    if (touch && Math.abs(event.clientX - touch.x) > SLACK) touch = null;
  });
  on("input", () => {
    if (!touch) return change();
    touch.value = range.valueAsNumber;
    follow();
  });
  on("pointerup", () => {
    if (touch && touch.value !== null) {
      range.valueAsNumber = touch.value;
      change();
    }
    touch = null;
    app.hold(key, false);
  });
  on("pointercancel", () => {
    touch = null;
    follow();
    app.hold(key, false);
  });
  on("change", () => { if (!touch) app.hold(key, false); });
  on("blur", () => app.hold(key, false));
}
