// Settle
// SPDX-License-Identifier: Apache-2.0

// A display on the wall, at `?kiosk`: it stays awake, and loads itself again after an upgrade of the gateway.

export function startKiosk(panel) {
  if (!new URLSearchParams(location.search).has("kiosk")) return;
  document.documentElement.dataset.kiosk = "";
  stayAwake();
  const show = panel.bar.showLink.bind(panel.bar);
  panel.bar.showLink = (name, reason) => {
    show(name, reason);
    if (name === "live") check();
  };
}

/** Loads the page again if the gateway has other files than at the first look: the page's tag covers them all. */
async function check() {
  const { dataset } = document.documentElement;
  try {
    const tag = (await fetch(location.pathname, { method: "HEAD", cache: "no-store" })).headers.get("ETag");
    if (dataset.version && tag !== dataset.version) location.reload();
    else if (tag) dataset.version = tag;
  } catch {
    // The next connection asks again.
  }
}

/** Keeps the screen on, where the browser allows it: over HTTPS and at localhost. */
async function stayAwake() {
  if (!navigator.wakeLock) return;
  const request = () => navigator.wakeLock.request("screen").catch(() => {});
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") request(); });
  await request();
}
