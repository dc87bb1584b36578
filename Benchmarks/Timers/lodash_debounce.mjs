// Settle
// SPDX-License-Identifier: Apache-2.0

// A debounce per key with lodash: one debounced function for each key, kept in a map.
//
// LODASH=FOLDER lodash_debounce.mjs KEYS BURSTS: each key changes ten times in each burst and leaves
// once.

import { createRequire } from "node:module";

const debounce = createRequire(import.meta.url)(process.env.LODASH + "/debounce.js");
const keys = Number(process.argv[2]);
const bursts = Number(process.argv[3]);
// Long enough that all of a burst falls into one quiet period.
const quiet = keys > 10_000 ? 10_000 : 100;
const names = Array.from({ length: keys }, (_, number) =>
  `home/room${number % 100}/device${number}/level`);
let state = 42n;
for (let place = keys - 1; place > 0; place--) {
  state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
  const other = Number((state >> 33n) % BigInt(place + 1));
  [names[place], names[other]] = [names[other], names[place]];
}
let runs = 0;
let left = () => {};
const setters = new Map();

function change(name, value) {
  let setter = setters.get(name);
  if (!setter) {
    setter = debounce((last) => {
      if (last === 9 && ++runs % keys === 0) left();
    }, quiet);
    setters.set(name, setter);
  }
  setter(value);
}

const start = process.cpuUsage();
for (let burst = 0; burst < bursts; burst++) {
  const all = new Promise((resolve) => { left = resolve; });
  for (let round = 0; round < 10; round++) for (const name of names) change(name, round);
  await all;
}
const spent = process.cpuUsage(start);
console.log(JSON.stringify({ cpu_ns: (spent.user + spent.system) * 1000, runs }));
