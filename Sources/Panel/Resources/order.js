// Settle
// SPDX-License-Identifier: Apache-2.0

// The areas of the house, and the order of devices that this browser has chosen.

import { t } from "./words.js";

export class Order {
  constructor(choices) { this.choices = choices; }

  isFavourite(device) { return this.choices.get("favourites", []).includes(device.id); }

  toggleFavourite(device) {
    const all = this.choices.get("favourites", []);
    this.choices.set("favourites", this.isFavourite(device) ? all.filter((id) => id !== device.id) : [...all, device.id]);
  }

  /** Moves a device among those that are shown with it. */
  move(device, neighbours, by) {
    const ids = neighbours.map((other) => other.id);
    const place = ids.indexOf(device.id);
    const other = place + by;
    if (place < 0 || other < 0 || other >= ids.length) return;
    [ids[place], ids[other]] = [ids[other], ids[place]];
    const rest = this.choices.get("order", []).filter((id) => !ids.includes(id));
    this.choices.set("order", [...rest, ...ids]);
  }

  /** The sections of the page: favourites, the areas, and what is in none. */
  sections(devices) {
    const chosen = new Map(this.choices.get("order", []).map((id, place) => [id, place]));
    const sorted = devices.map((device, place) => ({ device, place: chosen.get(device.id) ?? chosen.size + place }))
      .sort((a, b) => a.place - b.place).map(({ device }) => device);
    const sections = new Map();
    const add = (name, slug, device) => {
      if (!sections.has(slug)) sections.set(slug, { name, slug, devices: [] });
      sections.get(slug).devices.push(device);
    };
    const hasAreas = devices.some((device) => device.area);
    for (const device of sorted.filter((one) => this.isFavourite(one))) add(t("favourites"), "favourites", device);
    for (const device of sorted.filter((one) => one.area && !this.isFavourite(one))) add(device.area, slugOf(device.area), device);
    for (const device of sorted.filter((one) => !one.area && !this.isFavourite(one))) {
      add(hasAreas ? t("otherArea") : t("devices"), "devices", device);
    }
    return [...sections.values()];
  }
}

/** The name of an area in an address: Living Room becomes living-room. */
export function slugOf(name) {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "area";
}
