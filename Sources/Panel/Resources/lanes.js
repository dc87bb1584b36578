// Settle
// SPDX-License-Identifier: Apache-2.0

// The lanes: how many commands each may have in flight, and what the gateway learned about its mesh.

import { h } from "./dom.js";
import { counted, duration } from "./values.js";
import { t } from "./words.js";

const EVERY = 2000;

/** A section that follows the lanes while `dialog` is open; nothing where no lane has a rate or a window. */
export function lanesSection(link, dialog) {
  const body = h("tbody");
  const names = ["lane", "laneWaiting", "laneWindow", "laneRate", "laneRoundTrip", "laneLost"];
  const section = h("section", { class: "setting lanes", hidden: true }, h("h3", {}, t("lanes")),
    h("table", {}, h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, t(name))))), body));
  const follow = async () => {
    let isOver = false;
    try {
      const lanes = ((await link.get("v1/status")).queue?.lanes ?? []).filter((lane) => lane.rate !== null || lane.window);
      body.replaceChildren(...lanes.map(row));
      section.hidden = lanes.length === 0;
      // The gateway counts all of its keys for an answer: without lanes it is asked once.
      isOver = lanes.length === 0;
    } catch {
      // The connection's state is shown in the bar; the last figures stay.
    }
    // A dialog that was opened again has a section of its own.
    if (!isOver && dialog.open && section.isConnected) setTimeout(follow, EVERY);
  };
  follow();
  return section;
}

function row({ name, rate, waiting, in_flight: inFlight, window }) {
  const cell = (text) => h("td", {}, text);
  return h("tr", {}, h("th", { scope: "row", dir: "auto" }, name), cell(counted(waiting)),
    cell(window ? t("laneUse", counted(window.in_use), counted(window.size)) : counted(inFlight)),
    cell(rate === null ? "–" : t("perSecond", counted(rate))),
    cell(window?.round_trip_ms == null ? "–" : duration(window.round_trip_ms)),
    cell(window ? counted(window.lost) : "–"));
}
