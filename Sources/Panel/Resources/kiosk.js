// Settle
// SPDX-License-Identifier: Apache-2.0

// A display on the wall, at `?kiosk`: it stays awake, and loads itself again after an upgrade of the gateway.

export function startKiosk(panel) {
  if (!new URLSearchParams(location.search).has("kiosk")) return;
  document.documentElement.dataset.kiosk = "";
  stayAwake();
  let version = null;
  const show = panel.bar.showLink.bind(panel.bar);
  panel.bar.showLink = (name, reason) => {
    show(name, reason);
    if (name === "live") check();
  };
  // The page's tag covers all files of the panel.
  const check = async () => {
    try {
      const tag = (await fetch(location.pathname, { method: "HEAD", cache: "no-store" })).headers.get("ETag");
      if (version !== null && tag !== version) location.reload();
      version = tag;
    } catch {
      // The next connection asks again.
    }
  };
}

/** Keeps the screen on, where the browser allows it: over HTTPS and at localhost. */
async function stayAwake() {
  if (!navigator.wakeLock) return;
  const request = () => navigator.wakeLock.request("screen").catch(() => {});
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") request(); });
  await request();
}
