# Settle
# SPDX-License-Identifier: Apache-2.0
"""Delivery of the page, access to it, and the panel of the demo."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

from case import Browsers, Case, has_token, row
from stage import program, wait_for
from webdriver import KEYS


def setUpModule():
    Browsers.start()


@has_token
class Doors(Case):
    """Delivery of the page, and access to it."""

    settings = {"token": "correct-horse-battery"}

    def is_expected(self, complaint):
        return "401" in complaint

    def open(self, browser):
        browser.open(self.stage.url)

    def fetch(self, path, **headers):
        try:
            with urllib.request.urlopen(urllib.request.Request(self.stage.url + path, headers=headers), timeout=10) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as answer:
            return answer.code, dict(answer.headers), answer.read()

    def test_the_page_requests_the_token_and_remembers_it_if_allowed(self):
        self.browser.wait("return document.querySelector('#login').matches(':modal')")
        self.assertEqual(self.browser.run("return document.querySelectorAll('.tile').length"), 0)
        self.browser.type("#token", "wrong" + KEYS["enter"])
        self.await_text("#login-error", "wrong")
        self.browser.run("document.querySelector('#token').select()")
        self.browser.type("#token", "correct-horse-battery" + KEYS["enter"])
        self.browser.wait("return !document.querySelector('#login').open && document.querySelectorAll('.tile').length >= 8")
        self.browser.click(f"{row('boiler/target_temperature')} [aria-label$=': more']")
        self.await_progress("boiler/target_temperature", "confirmed")
        self.browser.open(self.stage.url)
        self.browser.wait("return document.querySelectorAll('.tile').length >= 8")
        self.assertEqual(self.browser.run("return [sessionStorage.length, localStorage.length]"), [1, 0])
        other = Browsers.browser()
        self.addCleanup(other.close)
        other.open(self.stage.url)
        other.wait("return document.querySelector('#login').matches(':modal')")

    def test_the_files_have_a_strict_policy_and_are_fetched_once(self):
        status, headers, body = self.fetch("")
        self.assertEqual(status, 200)
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual((headers["X-Content-Type-Options"], headers["Referrer-Policy"]), ("nosniff", "no-referrer"))
        names = re.findall(r'(?:href|src)="([^"#]+)"', body.decode())
        self.assertGreater(len(names), 8)
        for name in names:
            self.assertRegex(name, r"^panel/([0-9a-f]+/[a-z0-9-]+\.(js|css)|[a-z0-9-]+\.(svg|png|webmanifest))$")
            status, headers, _ = self.fetch(name)
            self.assertEqual(status, 200)
            status, again, body = self.fetch(name, **{"If-None-Match": headers["ETag"]})
            self.assertEqual((status, again["ETag"], body), (304, headers["ETag"], b""))
            self.assertEqual("immutable" in headers["Cache-Control"], name.count("/") == 2)
        self.assertEqual(self.fetch("panel/nothing.js")[0], 404)
        self.assertEqual(self.fetch("v1/devices")[0], 401)

    def test_no_other_host_is_contacted(self):
        self.browser.wait("return document.querySelector('#login').matches(':modal')")
        names = self.browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        self.assertGreater(len(names), 8)
        self.assertTrue(all(name.startswith(self.stage.url) for name in names), names)
        # The policy is enforced: inline scripts do not run.
        self.assertIsNone(self.browser.run("""
            const script = document.createElement("script");
            script.textContent = "globalThis.isOpen = true";
            document.head.append(script);
            return globalThis.isOpen ?? null;"""))
        self.assertTrue(any("Content Security Policy" in line for line in self.browser.complaints()))


class Demo(unittest.TestCase):
    """The panel of the demo, whose devices behave like real ones."""

    def test_the_demo_serves_the_panel_with_its_devices(self):
        folder = tempfile.mkdtemp(prefix="settle-panel-")
        self.addCleanup(shutil.rmtree, folder, True)
        script = os.path.join(folder, "hands.ndjson")
        with open(script, "w", encoding="utf-8") as file:
            file.write('{"key":"desk-lamp/brightness","set":40,"at":0}\n')
        demo = subprocess.Popen([program(), "demo", "--keep", "--script", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(demo.stdout.close)
        self.addCleanup(demo.wait, 20)
        self.addCleanup(demo.terminate)
        url = next(line for line in demo.stdout if "The panel: " in line).split("The panel: ")[1].strip()
        browser = Browsers.browser()
        self.addCleanup(browser.close)
        wait_for(lambda: answers(url), what=url)
        browser.open(url)
        browser.wait("return document.querySelectorAll('.tile').length === 4")
        # In percent, as people read it: 40 of 254.
        figure = "return document.querySelector(\"[data-key='desk-lamp/brightness'] .figure\").value"
        browser.wait(figure + " === '16'", what="what the hands asked is shown")
        box = browser.box("[data-key='desk-lamp/brightness'] .range")
        browser.press_at(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        for step in range(20):
            browser.slide_to(box["x"] + box["width"] / 2 + 4 * step, box["y"] + box["height"] / 2)
        browser.lift()
        browser.wait("return document.querySelector(\"[data-key='desk-lamp/brightness']\").dataset.progress === 'confirmed'")
        self.assertGreater(int(browser.run(figure)), 59)
        self.assertEqual(browser.complaints(), [])


def answers(url):
    try:
        with urllib.request.urlopen(url + "readyz", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False
