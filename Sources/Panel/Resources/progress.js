// Settle
// SPDX-License-Identifier: Apache-2.0

// The progress of a key in words.

import { changes, commands, duration, spoken } from "./values.js";
import { t } from "./words.js";

/** How much attention each state needs: a tile shows that of its neediest key. */
const NEED = { failed: 4, unsent: 3, waiting: 3, settling: 3, sending: 2, sent: 2 };

/** Progress that is shown for a while. */
export const OVER = new Set(["confirmed", "done", "unchanged", "cancelled", "superseded"]);

export function needOf(key, progress, now) {
  return NEED[progress.name] ?? (OVER.has(progress.name) && key.isFresh(now) ? 1 : 0);
}

export function statusText(key, progress, now) {
  const isFresh = key.isFresh(now);
  const tally = isFresh && key.tally && (key.tally.changes > 1 || key.tally.commands === 0)
    ? `${changes(key.tally.changes)} → ${commands(key.tally.commands)}` : null;
  const elsewhere = key.elsewhere === null ? null : t("now", spoken(key, key.elsewhere));
  switch (progress.name) {
    case "settling": return key.acceptedCount > 1 ? t("settlingMany", changes(key.acceptedCount)) : t("settling");
    case "waiting": return waitText(key, progress, now);
    case "unsent": return t("unsent");
    case "failed": return failureText(progress);
    case "sending":
    case "sent": return elsewhere ?? tally ?? t("sent");
    case "confirmed":
    case "done": return tally ?? elsewhere ?? "";
    case "unchanged": return tally ?? "";
    case "superseded": return progress.reason === "changed at the device" ? t("atDevice") : elsewhere ?? "";
    case "cancelled":
      if (!isFresh) return elsewhere ?? "";
      return progress.reason && progress.reason !== "urgent" ? t("cancelledBy", progress.reason) : t("cancelled");
    default: return elsewhere ?? "";
  }
}

export function failureText(progress) { return t(progress.isExpired ? "expiredBy" : "failedBy", progress.reason); }

function waitText(key, progress, now) {
  const left = progress.due === null ? null : duration(Math.ceil(Math.max(0, progress.due - now) / 1000) * 1000);
  switch (progress.waits) {
    case "offline":
    case "unknown": return left === null ? t("held") : t("heldFor", left);
    case "asleep": return left === null ? t("asleep") : t("asleepFor", left);
    case "in_flight": return t("inFlight");
    case "lane": return key.type === "action" && key.acceptedCount > 1 ? t("turns", key.acceptedCount) : t("turn");
    default: return t("settling");
  }
}
