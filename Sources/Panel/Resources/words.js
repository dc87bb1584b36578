// Settle
// SPDX-License-Identifier: Apache-2.0

// All texts of the panel, in one table. To add a language, copy the block `en`, and translate it. A text
// that takes values is a function. Reasons of failures come from the gateway, and are English.

const TABLE = {
  en: {
    // The page
    title: "Settle", find: "Find", findLabel: "Find a device or a property", skip: "Skip to the devices",
    devices: "Devices", showOnly: "Show only", settings: "Settings", close: "Close", home: "Home",
    failedCount: "failed", offlineCount: "offline", settlingCount: "settling",
    addedCount: "new", addedShow: "Show them",
    addedNotice: (count) => (count === 1 ? "1 device was added" : `${count} devices were added`),
    refusedNotice: (count) => `, ${count} refused: see the settings`,
    imported: "Imported devices", importedCount: (count) => (count === 1 ? "1 device" : `${count} devices`),
    goneDevices: (names) => `No longer announced: ${names}`,
    favourites: "Favourites", scenes: "Scenes", otherArea: "Other", areas: "Areas",
    changesNoun: "changes", commandsNoun: "commands", tallyTitle: "Since this page was opened",
    noDevices: "No devices yet. They are read from the gateway’s device files.",
    nothingCalled: (text) => `Nothing is called “${text}”.`, nothing: "Nothing to show.",
    // The connection
    live: "Live", lost: "Reconnecting", locked: "Locked", connecting: "Connecting", noBroker: "Broker away",
    lostBanner: (reason) => `${reason}. What you change is sent when it is back; a button or a scene only within 2 s.`,
    brokerBanner: "The MQTT broker is away. Changes wait for it.",
    streamEnded: "The gateway ended the connection", unreachable: "The gateway cannot be reached",
    browserOffline: "This device is offline", wrongToken: "That token is wrong.",
    notReached: "the gateway could not be reached, so it was not sent",
    noAnswer: "the gateway did not answer, so it is not known whether it arrived",
    tooLate: "the gateway could not be reached within 2 s, so it was not sent",
    // The token
    loginTitle: "This gateway requires a token", token: "Token", remember: "Remember it in this browser",
    loginHint: "It is in the gateway’s http.token_file.", unlock: "Unlock",
    // Values
    on: "On", off: "Off", unknown: "Unknown", open: "Open", closed: "Closed", offline: "Offline",
    openBy: (share) => `${share} open`, battery: "Battery",
    less: "less", more: "more", send: "send", typeValue: "type a value", pick: "pick a color",
    hue: "hue", saturation: "saturation", degrees: (n) => `${n} degrees`,
    noNumber: (text) => `“${text}” is not a number`, thatNumber: (text, meant) => `“${text}” is not a number here. Is it ${meant}?`,
    whichNumber: (text, one, other) => `“${text}” can be ${one} or ${other}. Type one of them.`,
    press: "Press", members: (n) => `${n} devices`, someOn: (on, all) => `${on} of ${all} on`,
    sums: "The house at a glance", lampsOn: (n) => (n === 0 ? "All lamps off" : n === 1 ? "1 lamp on" : `${n} lamps on`), allClosed: "All closed",
    openMany: (n) => `${n} open`, alarms: (n) => `${n} alarms`, lowBattery: (name, level) => `${name} battery ${level}`, lowBatteries: (n) => `${n} batteries low`,
    unheard: "Nothing heard yet", unheardNote: (topics) => `Nothing was heard of it since the gateway started${topics && `, on ${topics}`}`,
    backTo: (value) => `Back to ${value}`,
    adviseTopic: (topic) => `Nothing has been heard on ${topic}. Switch the device on, or correct “topic” or “state” in its device file.`,
    adviseUnheard: "Nothing has been heard of it since the gateway started. Switch the device on, or correct “topic” or “state” in its device file.",
    adviseUnreadable: "Compare “type”, and “value” of “state”, in the device file with what the device reports.",
    adviseExpired: "It waited longer than it may. Request it again when the device is back.",
    adviseDevice: "Look whether the device has power and is in reach, then retry.",
    askUnlock: (name) => `Unlock ${name}?`, unlockNow: "Unlock",
    // What a reading that is on or off says, by its class: on, off.
    classes: {
      door: ["Open", "Closed"], garage_door: ["Open", "Closed"], opening: ["Open", "Closed"], window: ["Open", "Closed"],
      lock: ["Locked", "Unlocked"], moisture: ["Wet", "Dry"], smoke: ["Smoke", "No smoke"], gas: ["Gas", "No gas"],
      carbon_monoxide: ["Carbon monoxide", "No carbon monoxide"], motion: ["Motion", "No motion"], occupancy: ["Motion", "No motion"],
      presence: ["Present", "Absent"], moving: ["Moving", "Still"], vibration: ["Vibration", "Still"], battery: ["Low", "Good"],
      battery_charging: ["Charging", "Not charging"], problem: ["Problem", "No problem"], safety: ["Unsafe", "Safe"],
      tamper: ["Tampered with", "Untouched"], running: ["Running", "Stopped"], connectivity: ["Connected", "Disconnected"],
      plug: ["Plugged in", "Unplugged"], power: ["Power", "No power"], light: ["Light", "Dark"], sound: ["Sound", "Quiet"],
      heat: ["Hot", "Normal"], cold: ["Cold", "Normal"], update: ["Update available", "Up to date"],
    },
    // Identifiers and words of devices that do not read well.
    names: { co2: "CO₂", pm25: "PM2.5", voc: "VOC", xy: "Color", hs: "Color", rgb: "Color" },
    // Progress
    settling: "Settling", waiting: "Waiting", unsent: "Not sent yet", sending: "Sending", sent: "Sent",
    confirmed: "Confirmed", unchanged: "Already there", failed: "Failed", expired: "Expired", cancelled: "Cancelled",
    superseded: "Superseded",
    settlingMany: (changes) => `Settling · ${changes}`, now: (value) => `Now ${value}`,
    held: "Held", heldFor: (time) => `Held · ${time} left`, asleep: "Asleep, held",
    asleepFor: (time) => `Asleep, held · ${time} left`,
    inFlight: "Waits for the answer to the last one", turn: "Waits for its turn",
    turns: (n) => `${n} wait for their turn`, atDevice: "Changed at the device",
    cancelledBy: (reason) => `Cancelled: ${reason}`, failedBy: (reason) => `Failed: ${reason}`,
    expiredBy: (reason) => `Expired: ${reason}`, tooLong: "it waited too long", notConfirmed: "it was not confirmed",
    refused: "refused", retry: "Retry", sendNow: "Send now", cancel: "Cancel", offlineNote: "Offline · changes wait",
    confirmedSpoken: (label, value) => `${label} ${value}, confirmed`,
    changes: (n, text) => `${text} ${n === 1 ? "change" : "changes"}`,
    commands: (n, text) => `${text} ${n === 1 ? "command" : "commands"}`,
    // The timeline
    timeline: "timeline", underWay: "Under way", noCommand: "No command since this page was opened.",
    commandsList: "Commands, the newest first", newestCommands: "Newest commands",
    immediately: (apart) => `Each change is sent immediately${apart}`,
    whenQuiet: (delay, most, apart) => `Sent when quiet for ${delay}${most}${apart}`,
    atMost: (time) => `, ${time} at most`, apart: (time) => `, ${time} apart`,
    summary: (seconds, changes, commands) => `In the last ${seconds} seconds ${changes} became ${commands}`,
    // A device's sheet, settings
    history: (name) => `${name}, reported`,
    historySpoken: (least, most, now) => `Reported over the last hours: ${least} to ${most}, now ${now}`,
    day: (least, most) => `${most ? `${least} to ${most}` : least} in 24 hours`, changed: (time) => `Changed ${time} ago`, seen: (time) => `Seen ${time} ago`,
    favourite: "Favourite", earlier: "Move earlier", later: "Move later",
    theme: "Theme", auto: "Automatic", light: "Light", dark: "Dark", language: "Language",
    kiosk: "Wall display", kioskHint: "Opens this page for a wall: a clock, large figures, pages that fit the screen.",
    sharedInMemory: "Favourites, order and what is hidden are lost with the next start of the gateway, because it keeps no journal.",
    arrange: "Arrange tiles", arrangeNote: "Moves tiles within their areas, and hides them.", done: "Done",
    arrangeHint: "Drag tiles to their places.", arrangeKeys: "Arrow keys move a tile, H hides it.",
    moveDevice: (name) => `Move ${name}`, hideDevice: (name) => `Hide ${name}`, showDevice: (name) => `Show ${name}`,
    nowHidden: "hidden", nowShown: "shown", nowAt: (place, count) => `place ${place} of ${count}`,
    lanes: "Lanes", lane: "Lane", laneWaiting: "Waiting", laneWindow: "In flight", laneRate: "Rate",
    laneRoundTrip: "Confirms in", laneLost: "Lost", laneUse: (used, size) => `${used} of ${size}`,
    perSecond: (rate) => `${rate}/s`,
    share: "Sign in another device", shareHint: "This code contains the token. Show it only to people who may use this gateway.",
    shareLocal: "Open this page at the gateway’s address in the network. Here it is at an address that only this computer has, and a code of it would be of no use.",
    group: "Group",
    ms: (n) => `${n} ms`, s: (n) => `${n} s`, min: (n) => `${n} min`, h: (n) => `${n} h`, d: (n) => (n === 1 ? "1 day" : `${n} days`),
  },
  de: {
    title: "Settle", find: "Suchen", findLabel: "Gerät oder Eigenschaft suchen", skip: "Zu den Geräten",
    devices: "Geräte", showOnly: "Nur zeigen", settings: "Einstellungen", close: "Schließen", home: "Zuhause",
    failedCount: "fehlgeschlagen", offlineCount: "offline", settlingCount: "warten",
    addedCount: "neu", addedShow: "Zeigen",
    addedNotice: (count) => (count === 1 ? "1 Gerät ist neu" : `${count} Geräte sind neu`),
    refusedNotice: (count) => `, ${count} abgelehnt: siehe Einstellungen`,
    imported: "Importierte Geräte", importedCount: (count) => (count === 1 ? "1 Gerät" : `${count} Geräte`),
    goneDevices: (names) => `Nicht mehr angekündigt: ${names}`,
    favourites: "Favoriten", scenes: "Szenen", otherArea: "Weitere", areas: "Bereiche",
    changesNoun: "Änderungen", commandsNoun: "Befehle", tallyTitle: "Seit diese Seite geöffnet wurde",
    noDevices: "Noch keine Geräte. Sie stehen in den Gerätedateien des Gateways.",
    nothingCalled: (text) => `Nichts heißt „${text}“.`, nothing: "Nichts zu zeigen.",
    live: "Verbunden", lost: "Verbindet neu", locked: "Gesperrt", connecting: "Verbindet", noBroker: "Broker fehlt",
    lostBanner: (reason) => `${reason}. Änderungen werden gesendet, sobald es wieder da ist; Tasten und Szenen nur binnen 2 s.`,
    brokerBanner: "Der MQTT-Broker ist nicht erreichbar. Änderungen warten auf ihn.",
    streamEnded: "Das Gateway hat die Verbindung beendet", unreachable: "Das Gateway ist nicht erreichbar",
    browserOffline: "Dieses Gerät ist offline", wrongToken: "Dieser Token ist falsch.",
    notReached: "das Gateway war nicht erreichbar, es wurde nicht gesendet",
    noAnswer: "das Gateway hat nicht geantwortet, ob es ankam, ist nicht bekannt",
    tooLate: "das Gateway war 2 s lang nicht erreichbar, es wurde nicht gesendet",
    loginTitle: "Dieses Gateway verlangt einen Token", token: "Token", remember: "In diesem Browser merken",
    loginHint: "Er steht in http.token_file des Gateways.", unlock: "Entsperren",
    on: "An", off: "Aus", unknown: "Unbekannt", open: "Offen", closed: "Zu", offline: "Offline",
    openBy: (share) => `${share} offen`, battery: "Batterie",
    less: "weniger", more: "mehr", send: "senden", typeValue: "Wert eingeben", pick: "Farbe wählen",
    hue: "Farbton", saturation: "Sättigung", degrees: (n) => `${n} Grad`,
    noNumber: (text) => `„${text}“ ist keine Zahl`, thatNumber: (text, meant) => `„${text}“ ist hier keine Zahl. Ist ${meant} gemeint?`,
    whichNumber: (text, one, other) => `„${text}“ kann ${one} oder ${other} sein. Bitte eines davon eingeben.`,
    press: "Drücken", members: (n) => `${n} Geräte`, someOn: (on, all) => `${on} von ${all} an`,
    sums: "Das Haus auf einen Blick", lampsOn: (n) => (n === 0 ? "Alle Lampen aus" : n === 1 ? "1 Lampe an" : `${n} Lampen an`), allClosed: "Alles zu",
    openMany: (n) => `${n} offen`, alarms: (n) => `${n} Alarme`, lowBattery: (name, level) => `${name} Batterie ${level}`, lowBatteries: (n) => `${n} Batterien schwach`,
    unheard: "Noch nichts gehört", unheardNote: (topics) => `Seit dem Start des Gateways war nichts von ihm zu hören${topics && `, auf ${topics}`}`,
    backTo: (value) => `Zurück auf ${value}`,
    adviseTopic: (topic) => `Auf ${topic} war nichts zu hören. Gerät einschalten oder „topic“ oder „state“ in seiner Gerätedatei berichtigen.`,
    adviseUnheard: "Seit dem Start des Gateways war nichts von ihm zu hören. Gerät einschalten oder „topic“ oder „state“ in seiner Gerätedatei berichtigen.",
    adviseUnreadable: "„type“ und „value“ von „state“ in der Gerätedatei mit dem vergleichen, was das Gerät meldet.",
    adviseExpired: "Es hat länger gewartet, als es darf. Noch einmal verlangen, wenn das Gerät wieder da ist.",
    adviseDevice: "Nachsehen, ob das Gerät Strom hat und erreichbar ist, dann wiederholen.",
    askUnlock: (name) => `${name} entriegeln?`, unlockNow: "Entriegeln",
    classes: {
      door: ["Offen", "Zu"], garage_door: ["Offen", "Zu"], opening: ["Offen", "Zu"], window: ["Offen", "Zu"],
      lock: ["Verriegelt", "Entriegelt"], moisture: ["Nass", "Trocken"], smoke: ["Rauch", "Kein Rauch"], gas: ["Gas", "Kein Gas"],
      carbon_monoxide: ["Kohlenmonoxid", "Kein Kohlenmonoxid"], motion: ["Bewegung", "Keine Bewegung"], occupancy: ["Bewegung", "Keine Bewegung"],
      presence: ["Anwesend", "Abwesend"], moving: ["Bewegt sich", "Ruhig"], vibration: ["Erschütterung", "Ruhig"], battery: ["Schwach", "Gut"],
      battery_charging: ["Lädt", "Lädt nicht"], problem: ["Problem", "Kein Problem"], safety: ["Unsicher", "Sicher"],
      tamper: ["Manipuliert", "Unberührt"], running: ["Läuft", "Steht"], connectivity: ["Verbunden", "Getrennt"],
      plug: ["Eingesteckt", "Ausgesteckt"], power: ["Strom", "Kein Strom"], light: ["Hell", "Dunkel"], sound: ["Geräusch", "Leise"],
      heat: ["Heiß", "Normal"], cold: ["Kalt", "Normal"], update: ["Update verfügbar", "Aktuell"],
    },
    names: {
      co2: "CO₂", pm25: "PM2,5", voc: "VOC", xy: "Farbe", hs: "Farbe", rgb: "Farbe", color_mode: "Farbmodus", power: "Ein/Aus", brightness: "Helligkeit", color: "Farbe", color_temp: "Farbtemperatur",
      position: "Stellung", movement: "Bewegung", command: "Befehl", target_temperature: "Solltemperatur", local_temperature: "Temperatur", temperature: "Temperatur",
      humidity: "Feuchte", mode: "Modus", battery: "Batterie", battery_low: "Batterie", contact: "Kontakt", occupancy: "Bewegung", motion: "Bewegung",
      water_leak: "Wasser", smoke: "Rauch", lock: "Schloss", speed: "Stufe", flow: "Durchfluss", effect: "Effekt", volume: "Lautstärke", message: "Nachricht",
      load: "Leistung", energy: "Energie", illuminance: "Helligkeit", pressure: "Druck", timer: "Timer", on: "An", off: "Aus", open: "Auf", close: "Zu", closed: "Zu",
      stop: "Stopp", heat: "Heizen", cool: "Kühlen", auto: "Automatik", unlock: "Entriegeln", none: "Keiner", up: "Auf", down: "Ab",
    },
    settling: "Beruhigt sich", waiting: "Wartet", unsent: "Noch nicht gesendet", sending: "Sendet", sent: "Gesendet",
    confirmed: "Bestätigt", unchanged: "Schon so", failed: "Fehlgeschlagen", expired: "Abgelaufen", cancelled: "Abgebrochen",
    superseded: "Überholt",
    settlingMany: (changes) => `Beruhigt sich · ${changes}`, now: (value) => `Jetzt ${value}`,
    held: "Gehalten", heldFor: (time) => `Gehalten · noch ${time}`, asleep: "Schläft, gehalten",
    asleepFor: (time) => `Schläft, gehalten · noch ${time}`,
    inFlight: "Wartet auf die Antwort zum letzten", turn: "Wartet, bis es dran ist",
    turns: (n) => `${n} warten, bis sie dran sind`, atDevice: "Am Gerät geändert",
    cancelledBy: (reason) => `Abgebrochen: ${reason}`, failedBy: (reason) => `Fehlgeschlagen: ${reason}`,
    expiredBy: (reason) => `Abgelaufen: ${reason}`, tooLong: "es hat zu lange gewartet", notConfirmed: "es wurde nicht bestätigt",
    refused: "abgelehnt", retry: "Wiederholen", sendNow: "Jetzt senden", cancel: "Abbrechen", offlineNote: "Offline · Änderungen warten",
    confirmedSpoken: (label, value) => `${label} ${value}, bestätigt`,
    changes: (n, text) => `${text} ${n === 1 ? "Änderung" : "Änderungen"}`,
    commands: (n, text) => `${text} ${n === 1 ? "Befehl" : "Befehle"}`,
    timeline: "Verlauf", underWay: "Unterwegs", noCommand: "Kein Befehl, seit diese Seite geöffnet wurde.",
    commandsList: "Befehle, der neueste zuerst", newestCommands: "Neueste Befehle",
    immediately: (apart) => `Jede Änderung wird sofort gesendet${apart}`,
    whenQuiet: (delay, most, apart) => `Gesendet nach ${delay} Ruhe${most}${apart}`,
    atMost: (time) => `, spätestens nach ${time}`, apart: (time) => `, im Abstand von ${time}`,
    summary: (seconds, changes, commands) => `In den letzten ${seconds} Sekunden wurden aus ${changes} ${commands}`,
    history: (name) => `${name}, gemeldet`,
    historySpoken: (least, most, now) => `In den letzten Stunden gemeldet: ${least} bis ${most}, jetzt ${now}`,
    day: (least, most) => `${most ? `${least} bis ${most}` : least} in 24 Stunden`, changed: (time) => `Geändert vor ${time}`, seen: (time) => `Gemeldet vor ${time}`,
    favourite: "Favorit", earlier: "Nach vorn", later: "Nach hinten",
    theme: "Farben", auto: "Automatisch", light: "Hell", dark: "Dunkel", language: "Sprache",
    kiosk: "Wandanzeige", kioskHint: "Öffnet diese Seite für die Wand: Uhr, große Zahlen, Seiten, die auf den Schirm passen.",
    sharedInMemory: "Favoriten, Reihenfolge und was verborgen ist, gehen mit dem nächsten Start des Gateways verloren, weil es kein Journal führt.",
    arrange: "Kacheln ordnen", arrangeNote: "Verschiebt Kacheln in ihren Bereichen und verbirgt sie.", done: "Fertig",
    arrangeHint: "Kacheln an ihren Platz ziehen.", arrangeKeys: "Pfeiltasten verschieben eine Kachel, H verbirgt sie.",
    moveDevice: (name) => `${name} verschieben`, hideDevice: (name) => `${name} verbergen`, showDevice: (name) => `${name} zeigen`,
    nowHidden: "verborgen", nowShown: "sichtbar", nowAt: (place, count) => `Platz ${place} von ${count}`,
    lanes: "Bahnen", lane: "Bahn", laneWaiting: "Wartend", laneWindow: "Unterwegs", laneRate: "Rate",
    laneRoundTrip: "Bestätigt in", laneLost: "Verloren", laneUse: (used, size) => `${used} von ${size}`,
    perSecond: (rate) => `${rate}/s`,
    share: "Anderes Gerät anmelden", shareHint: "Dieser Code enthält den Token. Nur zeigen, wer dieses Gateway benutzen darf.",
    shareLocal: "Öffnen Sie diese Seite unter der Adresse des Gateways im Netz. Die Adresse hier hat nur dieser Rechner, ein Code davon nützte nichts.",
    group: "Gruppe",
    ms: (n) => `${n} ms`, s: (n) => `${n} s`, min: (n) => `${n} min`, h: (n) => `${n} h`, d: (n) => (n === 1 ? "1 Tag" : `${n} Tage`),
  },
};

/** The languages of the table. */
export const LANGUAGES = Object.keys(TABLE);

/** The language of the page: the chosen one, otherwise the first of the browser's that is in the table. */
export let language = "en";

/** The format of numbers and times: that of the language as this browser writes it, or the browser's own. */
export let locale;

export function choose(wanted) {
  const short = (name) => String(name ?? "").toLowerCase().split("-")[0];
  const found = [wanted, ...navigator.languages].map(short).find((name) => Object.hasOwn(TABLE, name));
  language = found ?? "en";
  locale = found && (navigator.languages.find((name) => short(name) === found) ?? found);
  document.documentElement.lang = language;
}

/** What a property of a class says that is on or off; null for a class without words. */
export function wordOf(name, isOn) { return TABLE[language].classes[name]?.[isOn ? 0 : 1] ?? null; }

/** An identifier or a word of a device, as people say it; null for one that reads well. */
export function nameOf(id) {
  const { names } = TABLE[language];
  return Object.hasOwn(names, id) ? names[id] : null;
}

/** The text called `name`, with the values that it takes. */
export function t(name, ...values) {
  const text = TABLE[language][name];
  return typeof text === "function" ? text(...values) : text ?? name;
}

/** Sets the texts of the page itself: those of elements with `data-t`, and attributes of `data-t-…`. */
export function translate(root = document) {
  for (const node of root.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of root.querySelectorAll("[data-t-label]")) node.setAttribute("aria-label", t(node.dataset.tLabel));
  for (const node of root.querySelectorAll("[data-t-hint]")) node.setAttribute("placeholder", t(node.dataset.tHint));
  for (const node of root.querySelectorAll("[data-t-title]")) node.setAttribute("title", t(node.dataset.tTitle));
}

choose(null);
