# Settle
# SPDX-License-Identifier: Apache-2.0
"""Areas, tiles, addresses, order, scenes, the wall, settings."""

import json
import re
import time

from case import Browsers, Case, has_token, row
from stage import wait_for

HOME = """
desk-lamp:
  name: Desk lamp
  area: Living room
  properties:
    power: {type: boolean, command: {topic: cmd/desk-lamp/power, payload: $value}, state: {topic: state/desk-lamp/power}}
    brightness: {type: integer, range: [0, 100], unit: "%", command: {topic: cmd/desk-lamp/brightness, payload: $value}, state: {topic: state/desk-lamp/brightness}, policy: {delay: 600ms, max_wait: none}}
    color_temp: {type: integer, range: [150, 500], unit: mired, command: {topic: cmd/desk-lamp/color_temp, payload: $value}, state: {topic: state/desk-lamp/color_temp}}
ceiling:
  name: Ceiling
  area: Living room
  properties:
    brightness: {type: integer, range: [0, 100], unit: "%", command: {topic: cmd/ceiling/brightness, payload: $value}, state: {topic: state/ceiling/brightness}}
boiler:
  name: Boiler
  area: Cellar
  properties:
    target_temperature: {type: number, range: [5, 30], step: 0.5, unit: °C, command: {topic: cmd/boiler/target_temperature, payload: $value}, state: {topic: state/boiler/target_temperature}, policy: {delay: 2s, max_wait: none}}
    local_temperature: {type: number, unit: °C, state: {topic: state/boiler/local_temperature}}
blind:
  name: Blind
  area: Living room
  properties:
    position: {type: integer, range: [0, 100], unit: "%", command: {topic: cmd/blind/position, payload: $value}, state: {topic: state/blind/position}}
    command: {type: action, values: [OPEN, CLOSE, STOP], urgent: [STOP], command: {topic: cmd/blind/command, payload: $value}}
air:
  name: Air
  properties:
    temperature: {type: number, unit: °C, state: {topic: state/air/temperature}}
    humidity: {type: number, unit: "%", state: {topic: state/air/humidity}}
hidden:
  panel: false
  properties:
    power: {type: boolean, command: {topic: cmd/hidden/power, payload: $value}, state: {topic: state/hidden/power}}
plug:
  name: Plug
  properties:
    power: {type: boolean, command: {topic: cmd/plug/power, payload: $value}, state: {topic: state/plug/power}}
fan:
  name: Fan
  properties:
    speed: {type: integer, range: [0, 5], command: {topic: cmd/fan/speed, payload: $value}, state: {topic: state/fan/speed}}
groups:
  lamps: {name: All lamps, members: [desk-lamp, ceiling]}
scenes:
  evening: {desk-lamp: {brightness: 20}}
"""
STATES = {"desk-lamp/power": "true", "desk-lamp/brightness": "72", "desk-lamp/color_temp": "400", "ceiling/brightness": "10", "boiler/target_temperature": "21.5",
          "boiler/local_temperature": "19.8", "blind/position": "35", "air/temperature": "22.4", "air/humidity": "51", "hidden/power": "true", "plug/power": "false", "fan/speed": "2"}
SHOWN = "return [...document.querySelectorAll('.tile')].filter((tile) => tile.offsetParent).map((tile) => tile.dataset.device)"


def setUpModule():
    Browsers.start()


LANED = """
mesh-lamp:
  lane: zigbee
  properties:
    level: {type: integer, range: [0, 100], policy: {delay: 0s}, command: {topic: mesh/set}}
"""


class Lanes(Case):
    settings = {"devices": LANED, "states": {}, "lines": "lanes: {zigbee: {window: 7, rate: 2/s}}\n"}

    def open(self, browser):
        browser.open(self.stage.url)
        browser.wait("return document.querySelectorAll('.tile').length === 1")

    def test_settings_show_lanes_and_follow_them(self):
        self.browser.click("#open-settings")
        cells = "[...document.querySelectorAll('.lanes tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent).join(' | ')).join()"
        self.browser.wait(f"return {cells} === 'zigbee | 0 | 0 of 7 | 2/s | – | 0'")
        self.browser.run("document.querySelector('#settings').close()")
        self.browser.wait("return !document.querySelector('#settings').open")


LAMP = """
lamp:
  properties:
    level: {type: integer, range: [0, 100], command: {topic: lamp/set}}
"""


class Imports(Case):
    settings = {"devices": LAMP, "states": {}, "lines": "import: {quiet: 200ms}\n"}

    def open(self, browser):
        browser.open(self.stage.url)
        browser.wait("return document.querySelectorAll('.tile').length >= 1")
        self.addCleanup(self.forget)

    def test_devices_that_appear_are_announced_and_shown_on_request(self):
        for name in ("Fan", "Plug"):
            config = {"name": name, "unique_id": name, "command_topic": f"{name}/set"}
            self.stage.devices.publish(f"homeassistant/switch/{name}/config", json.dumps(config), retain=True)
        self.browser.wait("return document.querySelectorAll('.tile').length === 3")
        self.browser.wait("return !document.querySelector('#notice').hidden")
        self.assertIn("added", self.browser.run("return document.querySelector('#notice-text').textContent"))
        self.assertEqual(len(self.browser.run(SHOWN)), 3)
        self.browser.click("#notice-show")
        self.assertNotIn("lamp", self.browser.run(SHOWN))
        self.assertTrue(self.browser.run("return document.querySelector('#notice').hidden"))
        self.browser.click("[data-only=added]")
        self.assertEqual(len(self.browser.run(SHOWN)), 3)
        # Who has looked is not told again.
        self.open(self.browser)
        self.browser.wait("return document.querySelectorAll('.tile').length === 3")
        self.assertTrue(self.browser.run("return document.querySelector('#notice').hidden"))


class House(Case):
    settings = {"devices": HOME, "states": STATES}

    def setUp(self):
        self.open(self.browser)
        self.addCleanup(self.forget)
        self.addCleanup(self.stage.put, "v1/panel", {})

    def is_expected(self, complaint):
        # One of these tests restarts the gateway.
        return "net::ERR" in complaint or "Failed to load resource" in complaint

    def text(self, selector):
        return self.browser.run("return document.querySelector(arguments[0])?.textContent ?? null", selector)

    def test_tiles_say_what_their_devices_are(self):
        kinds = dict(self.browser.run("return [...document.querySelectorAll('.tile')].map((tile) => [tile.dataset.device, tile.dataset.kind])"))
        self.assertEqual(kinds, {"desk-lamp": "light", "ceiling": "light", "lamps": "light", "boiler": "climate", "blind": "cover", "air": "reading", "plug": "switch", "fan": "number"})
        self.stage.send({"key": "boiler/target_temperature", "set": 21.5, "now": True})
        self.browser.wait("return document.querySelector('[data-device=boiler] .tile-figure').textContent === '21.5°'")
        self.await_text("[data-device=boiler] .tile-state", "Now 19.8 °C")
        self.assertEqual([self.text(f"[data-device=air] .reading-cell:nth-child({n}) b") for n in (1, 2)], ["22.4 °C", "51 %"])
        stop, up = (self.browser.box(f"[data-device=blind] .move-{name}")["width"] for name in ("stop", "up"))
        self.assertGreater(stop, up)
        # The lamp has the color of its light: warm, and gray when it is off.
        color = "return getComputedStyle(document.querySelector('[data-device=desk-lamp] .thick-lit')).backgroundColor"
        red, _, blue = (int(part) for part in self.browser.run(color)[4:-1].split(",")[:3])
        self.assertGreater(red, blue + 60)
        self.stage.report("desk-lamp/power", "false")
        self.browser.wait("return document.querySelector('[data-device=desk-lamp] .thick').hasAttribute('data-off')")
        # Off has no level.
        self.assertEqual(self.browser.run("const thick = document.querySelector('[data-device=desk-lamp] .thick'); return [getComputedStyle(thick.querySelector('.thick-lit')).visibility, thick.querySelector('.thick-thumb').style.getPropertyValue('--fill')]"), ["hidden", "0.0000"])
        self.stage.report("desk-lamp/power", "true")
        self.browser.wait("return !document.querySelector('[data-device=desk-lamp] .thick').hasAttribute('data-off')")

    def test_a_tile_is_a_slider_with_a_ring_around_its_thumb(self):
        box = self.browser.box("[data-device=desk-lamp] .range")
        self.assertGreaterEqual(box["height"], 44)
        y = box["y"] + box["height"] / 2
        told = len(self.stage.told("desk-lamp/brightness"))
        self.browser.press_at(box["x"] + box["width"] * 0.3, y)
        for step in range(20):
            self.browser.slide_to(box["x"] + box["width"] * (0.3 + step / 40), y)
        mark = "return document.querySelector('[data-device=desk-lamp] .thick-thumb .mark').dataset.progress"
        self.assertEqual(self.browser.run(mark), "settling")
        self.browser.lift()
        self.browser.wait(mark + " === 'confirmed'")
        self.assertEqual(len(self.stage.told("desk-lamp/brightness")), told + 1)
        self.assertIn(self.stage.told("desk-lamp/brightness")[-1], self.text("[data-device=desk-lamp] .thick-lit .thick-value"))

    def test_a_value_that_waits_can_be_sent_or_cancelled_from_the_page(self):
        more = "[data-device=boiler] [aria-label$=': more']"
        for button, end in (("#pending .button:not(.primary)", "cancelled"), ("#pending .primary", "confirmed")):
            self.stage.send({"key": "boiler/target_temperature", "set": 21.5, "now": True})
            self.browser.wait("return document.querySelector('[data-device=boiler] .tile-figure').textContent === '21.5°'")
            self.browser.click(more)
            self.browser.wait("return !document.querySelector('#pending').hidden")
            self.assertIn("Boiler, Target temperature: 22", self.text(".pending-text"))
            self.browser.run("document.querySelector(arguments[0]).click()", button)
            self.browser.wait("return settlePanel.house.find('boiler/target_temperature').phase === arguments[0]", end)
        self.browser.wait("return document.querySelector('#pending').hidden")

    def test_an_open_device_shows_what_it_reported_with_axes(self):
        texts = "return [...document.querySelectorAll('.history:not([hidden]) text.' + arguments[0])].map((node) => node.textContent)"
        line = "return document.querySelector('.history-line')?.getAttribute('d') ?? null"
        for key in ("air/temperature", "plug/power"):
            self.addCleanup(self.stage.report, key, STATES[key])
        self.stage.report("air/temperature", "24.5")
        wait_for(lambda: self.stage.get("v1/history?key=air/temperature")["points"][-1]["value"] == 24.5)
        self.browser.click("[data-device=air] .tile-name")
        self.browser.wait(line, what="the history of the first reading")
        values = [float(text) for text in self.browser.run(texts, "history-value")]
        self.assertLessEqual(min(values), 22.4)
        self.assertGreaterEqual(max(values), 24.5)
        self.assertGreaterEqual(len(values), 3)
        times = self.browser.run(texts, "history-time")
        self.assertGreaterEqual(len(times), 2)
        for text in times:
            self.assertTrue(re.match(r"^\d{1,2}:\d\d( [AP]M)?$", text.replace("\u202f", " ")), text)
        self.assertIn("22.4 °C – 24.5 °C", self.text(".history-title"))
        # Reports go on in it.
        self.stage.report("air/temperature", "31")
        self.browser.wait("return document.querySelector('.history-title').textContent.includes('31 °C')")
        self.assertGreater(max(float(text) for text in self.browser.run(texts, "history-value")), 30)
        # A switch is on or off.
        self.browser.fold()
        self.assertTrue(self.browser.run("return document.querySelector('.history').hidden"))
        self.stage.report("plug/power", "true")
        self.browser.find(row("plug/power"))
        self.browser.wait("return document.querySelectorAll('.history-value').length === 2")
        self.assertEqual(self.browser.run(texts, "history-value"), ["Off", "On"])
        self.browser.fold()
        # A word has none.
        self.browser.click("[data-device=blind] .tile-name")
        self.browser.click(row("blind/command") + " .label")
        self.assertTrue(self.browser.run("return document.querySelector('.history').hidden"))
        self.browser.fold()

    def test_areas_have_addresses_and_so_have_devices(self):
        names = "return [...document.querySelectorAll('.area h2')].map((title) => title.textContent)"
        self.assertEqual(self.browser.run(names), ["Scenes", "Living room", "Cellar", "Other"])
        self.assertNotIn("hidden", self.browser.run(SHOWN))
        self.browser.click("[data-slug=cellar]")
        self.assertEqual(self.browser.run(SHOWN), ["boiler"])
        self.browser.open(self.stage.url + "#living-room/desk-lamp")
        self.browser.wait("return document.querySelector('#sheet').open")
        self.assertEqual(self.text("#sheet-title"), "Desk lamp")
        self.browser.fold()
        self.browser.click("[data-device=boiler] .tile-name")
        self.assertEqual(self.browser.run("return location.hash"), "#cellar/boiler")
        self.browser.run("history.back()")
        self.browser.wait("return !document.querySelector('#sheet').open")

    def test_an_open_device_offers_to_close_it(self):
        self.browser.click("[data-device=blind] .tile-name")
        self.assertEqual(self.browser.run("return document.activeElement.getAttribute('aria-label')"), "Close")
        self.browser.fold()

    def test_favourites_and_order_are_kept(self):
        self.browser.click("[data-device=blind] .tile-name")
        self.browser.click("#sheet [aria-label='Move earlier']")
        self.browser.fold()
        self.assertEqual(self.browser.run(SHOWN)[:3], ["desk-lamp", "blind", "ceiling"])
        self.browser.click("[data-device=fan] .tile-name")
        self.browser.click("#sheet [aria-label=Favourite]")
        self.browser.fold()
        self.open(self.browser)
        self.assertEqual(self.browser.run(SHOWN)[:4], ["fan", "desk-lamp", "blind", "ceiling"])
        # Another screen shows the same, and follows.
        other = Browsers.browser()
        self.addCleanup(other.close)
        self.open(other)
        other.wait(f"return JSON.stringify((() => {{ {SHOWN} }})().slice(0, 4)) === '[\"fan\",\"desk-lamp\",\"blind\",\"ceiling\"]'")
        self.browser.click("[data-device=fan] .tile-name")
        self.browser.click("#sheet [aria-label=Favourite]")
        self.browser.fold()
        other.wait(f"return (() => {{ {SHOWN} }})()[0] === 'desk-lamp'")
        self.assertEqual(self.stage.get("v1/panel")["favourites"], [])
        self.assertEqual(self.stage.get("v1/panel")["order"][:3], ["desk-lamp", "blind", "ceiling"])

    def test_a_scene_is_a_button_and_a_group_is_a_tile(self):
        self.browser.click(".scene")
        wait_for(lambda: self.stage.told("desk-lamp/brightness")[-1:] == ["20"])
        self.browser.click("[data-device=lamps] .tile-name")
        self.assertIn("2 devices", self.text("#sheet-note"))
        self.browser.fold()

    def test_on_a_phone_there_is_room_for_six_devices_of_three_areas(self):
        self.browser.resize(360, 740, 2, touch=True)
        self.addCleanup(self.browser.resize, 1280, 900)
        self.browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        seen = self.browser.run("return [...document.querySelectorAll('.tile')].filter((tile) => tile.getBoundingClientRect().bottom <= innerHeight).length")
        self.assertGreaterEqual(seen, 6)

    def test_only_tiles_in_view_are_drawn(self):
        self.browser.resize(360, 300)
        self.addCleanup(self.browser.resize, 1280, 900)
        self.open(self.browser)
        self.assertLess(self.browser.run("return document.querySelectorAll('.tile-body').length"), 8)
        self.browser.run("window.scrollTo(0, 1e6)")
        self.browser.wait("return document.querySelector('[data-device=fan] .tile-body')")

    def test_the_wall_has_large_figures_in_at_most_five_columns(self):
        self.browser.resize(1920, 1080)
        self.addCleanup(self.browser.resize, 1280, 900)
        self.browser.open(self.stage.url + "?kiosk")
        self.browser.wait("return document.querySelector('[data-device=boiler] .tile-figure')")
        self.assertFalse(self.browser.run("return document.querySelector('#filter').offsetParent !== null"))
        self.assertGreaterEqual(self.browser.run("return parseFloat(getComputedStyle(document.querySelector('.tile-figure')).fontSize)"), 40)
        self.assertLessEqual(self.browser.run("return getComputedStyle(document.querySelector('#house')).gridTemplateColumns.split(' ').length"), 5)

    def test_the_wall_loads_itself_again_after_an_upgrade(self):
        self.upgrade("?kiosk")

    def test_a_tab_loads_itself_again_after_an_upgrade_when_nobody_uses_it(self):
        self.upgrade("")

    def upgrade(self, path):
        self.browser.open(self.stage.url + path)
        self.browser.wait("return settlePanel.link.state === 'live' && document.documentElement.dataset.version")
        self.browser.run("globalThis.isOld = true")
        # The same gateway again: the page stays.
        self.stage.stop_gateway()
        self.browser.wait("return settlePanel.link.state === 'lost'")
        self.stage.start_gateway()
        self.browser.wait("return settlePanel.link.state === 'live' && settlePanel.house.hasBroker")
        time.sleep(1)
        self.assertTrue(self.browser.run("return globalThis.isOld ?? false"))
        # One with other files: their tag differs from that of the page.
        self.browser.run("document.documentElement.dataset.version = 'that of an older gateway'")
        if not path:
            self.browser.click("#open-settings")
        self.stage.stop_gateway()
        self.browser.wait("return settlePanel.link.state === 'lost'")
        self.stage.start_gateway()
        if not path:
            self.browser.wait("return settlePanel.link.state === 'live'")
            time.sleep(3)
            self.assertTrue(self.browser.run("return globalThis.isOld ?? false"))
            self.browser.run("settlePanel.settings.dialog.close()")
        self.browser.wait("return !globalThis.isOld && globalThis.settlePanel?.link.state === 'live'", what="the page has loaded itself again")
        self.assertEqual(self.browser.run("return location.search"), path)

    def test_settings_list_the_newest_commands_of_all_devices(self):
        lines = "return [...document.querySelectorAll('#settings .log li')].map((line) => [...line.children].map((cell) => cell.innerText.trim()).slice(1))"
        self.stage.send({"key": "plug/power", "set": True, "source": "rule"})
        wait_for(lambda: self.stage.told("plug/power"), what="the plug's command")
        # Values that were replaced before they were sent are no commands.
        self.stage.send(*({"key": "fan/speed", "set": number, "source": "cli"} for number in (3, 4, 5)))
        self.browser.wait("return document.querySelector('#house [data-device=fan]').tile.device.keys[0].phase === 'confirmed'")
        self.browser.click("#open-settings")
        self.browser.click("#settings details:has(.log) summary")
        self.browser.wait(lines.replace("return ", "return (") + ").length === 2")
        self.assertEqual(self.browser.run(lines), [["Fan, Speed", "5", "Confirmed · cli"], ["Plug, Power", "On", "Confirmed · rule"]])
        # It follows while it is open.
        self.stage.deaf.add("plug")
        self.addCleanup(self.stage.deaf.discard, "plug")
        self.stage.send({"key": "plug/power", "set": False, "now": True})
        self.browser.wait("return document.querySelector('#settings .log li').innerText.includes('http')")
        self.browser.wait("return document.querySelector('#settings .log li').className === 'bad'", what="the command has failed")
        self.assertEqual(len(self.browser.run(lines)), 3)
        # It keeps 200.
        self.browser.run("""
            const { log, house } = settlePanel, key = house.find("fan/speed");
            for (let id = 0; id < 300; id += 1) log.take(key, { id, phase: "sending", value: 1, source: "x", at: new Date().toISOString(), reason: null });""")
        self.browser.wait("return document.querySelectorAll('#settings .log li').length === 200")
        self.assertEqual(self.browser.run("return [settlePanel.log.commands.size, document.documentElement.scrollWidth <= innerWidth]"), [200, True])
        self.browser.run("document.querySelector('#settings').close()")

    def test_theme_and_language_are_chosen(self):
        # The page may write its choices once more after the storage was cleared.
        self.addCleanup(self.browser.run, "for (const name of ['theme', 'language']) settlePanel.settings.choices.set(name, 'auto')")
        self.browser.click("#open-settings")
        self.browser.run("const theme = document.querySelector('#settings select'); theme.value = 'dark'; theme.dispatchEvent(new Event('change'));")
        self.assertEqual(self.browser.run("return getComputedStyle(document.documentElement).colorScheme"), "dark")
        self.browser.run("settlePanel.settings.choices.set('language', 'de')")
        self.open(self.browser)
        self.assertEqual(self.browser.run("return [document.documentElement.lang, document.documentElement.dataset.theme]"), ["de", "dark"])
        self.assertEqual(self.text("#link-text"), "Verbunden")

    def test_the_page_can_be_installed(self):
        manifest = self.stage.get("panel/panel.webmanifest")
        self.assertEqual([icon["sizes"] for icon in manifest["icons"]], ["192x192", "512x512", "any"])
        self.assertEqual(self.browser.run("return fetch('panel/icon-512.png').then((answer) => answer.headers.get('content-type'))"), "image/png")


@has_token
class Shared(Case):
    """Signing in another device."""

    settings = {"token": "correct-horse-battery"}

    def is_expected(self, complaint):
        return "401" in complaint

    def setUp(self):
        self.browser.open(self.stage.url + "#token=correct-horse-battery")
        self.browser.wait("return document.querySelectorAll('.tile').length >= 8")

    def test_the_signed_in_panel_shows_a_code_for_another_device(self):
        # A code of this computer's own address would lead another device to itself.
        self.browser.click("#open-settings")
        self.browser.click(".share summary")
        self.assertIn("only this computer", self.browser.run("return document.querySelector('.share').innerText"))
        self.assertIsNone(self.browser.run("return document.querySelector('.qr')"))
        places = ["http://localhost:8484", "http://127.0.0.1:8484", "http://[::1]:8484", "http://settle.example:8484", "http://192.168.1.7:8484"]
        found = self.browser.run("return import(new URL('settings.js', document.querySelector('script[type=module]').src)).then((module) => arguments[0].map((place) => module.addressFor(new URL(place), 'a b')))", places)
        self.assertEqual(found, [None, None, None, "http://settle.example:8484/#token=a%20b", "http://192.168.1.7:8484/#token=a%20b"])
        self.browser.run("return import(new URL('settings.js', document.querySelector('script[type=module]').src)).then((module) => document.querySelector('.share').append(module.qrSymbol(arguments[0], 'code')))", found[4])
        self.assertGreater(self.browser.box(".qr")["width"], 100)
        rows = self.browser.run("return import(new URL('settings.js', document.querySelector('script[type=module]').src)).then((module) => module.qrRows('https://a').map((row) => row.map(Number).join('')))")
        # Version 1, with its three corners.
        self.assertEqual(len(rows), 21)
        self.assertEqual([rows[0][:7], rows[0][14:], rows[20][:7]], ["1111111"] * 3)
