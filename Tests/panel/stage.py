# Settle
# SPDX-License-Identifier: Apache-2.0
"""A private broker, a gateway and simulated devices, for browsers."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

import ingress
from mqtt import Client
from serve import Server

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

#: Whether the page is in a frame of Home Assistant.
IN_FRAME = os.environ.get("PANEL") == "ingress"


def reserve_port():
    """A socket that holds a port of 127.0.0.1, and the port: a server that sets SO_REUSEADDR may listen there.

    The kernel does not reuse it while the socket is open."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder, holder.getsockname()[1]


def program():
    """The newest `settled` that was built."""
    found = [path for path in (os.path.join(ROOT, ".build", kind, "settled") for kind in ("debug", "release")) if os.path.exists(path)]
    if not found:
        raise FileNotFoundError("settled is not built: make build")
    return max(found, key=os.path.getmtime)


def wait_for(check, seconds=60, what="it"):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"in vain for {seconds} s: {what}")


# The home of the tests: every type of property, and devices that fail or are offline.
HOME = """
desk-lamp:
  name: Desk lamp
  properties:
    power: {type: boolean, command: {topic: cmd/desk-lamp/power, payload: $value}, state: {topic: state/desk-lamp/power}, policy: {delay: 50ms}}
    brightness: {type: integer, range: [0, 254], step: 1, command: {topic: cmd/desk-lamp/brightness, payload: $value}, state: {topic: state/desk-lamp/brightness}, policy: {delay: 600ms, max_wait: none}}
    color_temp: {type: integer, range: [150, 500], step: 1, unit: mired, command: {topic: cmd/desk-lamp/color_temp, payload: $value}, state: {topic: state/desk-lamp/color_temp}}
boiler:
  name: Boiler
  properties:
    target_temperature: {type: number, range: [5, 30], step: 0.5, unit: °C, command: {topic: cmd/boiler/target_temperature, payload: $value}, state: {topic: state/boiler/target_temperature}, policy: {delay: 800ms, max_wait: none}}
    mode: {type: choice, values: ["off", heat, auto], command: {topic: cmd/boiler/mode, payload: $value}, state: {topic: state/boiler/mode}}
hall-blind:
  name: Hall blind
  properties:
    position: {type: integer, range: [0, 100], step: 1, unit: "%", command: {topic: cmd/hall-blind/position, payload: $value}, state: {topic: state/hall-blind/position}, confirm: {within: 30s, tolerance: 1}, policy: {delay: 500ms, max_wait: none}}
    command: {type: action, name: Movement, values: [OPEN, CLOSE, STOP], urgent: [OPEN, CLOSE, STOP], ends: [position], command: {topic: cmd/hall-blind/command, payload: $value}}
strip:
  name: Shelf light
  properties:
    color: {type: color, encode: hex, command: {topic: cmd/strip/color, payload: $value}, state: {topic: state/strip/color}, confirm: {within: 5s, tolerance: 0.01}}
    effect: {type: choice, values: [None, Candle, Aurora, Waves, Ember, Rainbow], command: {topic: cmd/strip/effect, payload: $value}, state: {topic: state/strip/effect}}
garden-pump:
  name: Garden pump
  properties:
    flow: {type: number, range: [0, 12], step: 0.1, unit: l/min, command: {topic: cmd/garden-pump/flow, payload: $value}, state: {topic: state/garden-pump/flow}, confirm: {within: 300ms}, policy: {delay: 200ms}}
attic-fan:
  name: Attic fan
  properties:
    speed: {type: integer, range: [0, 5], step: 1, command: {topic: cmd/attic-fan/speed, payload: $value}, state: {topic: state/attic-fan/speed}, policy: {delay: 200ms}}
  availability: {topic: state/attic-fan/status, online: online, offline: offline}
porch-light:
  name: Porch light
  properties:
    brightness: {type: integer, range: [0, 100], step: 1, unit: "%", policy: live, command: {topic: cmd/porch-light/brightness, payload: $value}, state: {topic: state/porch-light/brightness}}
sign:
  name: Door sign
  properties:
    message: {type: text, command: {topic: cmd/sign/message, payload: $value}, state: {topic: state/sign/message}}
    volume: {type: number, step: 0.25, command: {topic: cmd/sign/volume, payload: $value}, state: {topic: state/sign/volume}}
"""

STATES = {
    "desk-lamp/power": "true", "desk-lamp/brightness": "120", "desk-lamp/color_temp": "320",
    "boiler/target_temperature": "21", "boiler/mode": "heat", "hall-blind/position": "35",
    "strip/color": "#3f8cff", "strip/effect": "Aurora", "garden-pump/flow": "4.5", "attic-fan/speed": "2",
    "porch-light/brightness": "60", "sign/message": "Please ring twice", "sign/volume": "0.5",
}


class Stage:
    """Everything that a browser talks to. Devices report each command, except those in `deaf`."""

    def __init__(self, devices=HOME, states=STATES, token=None, lines=""):
        self.folder = tempfile.mkdtemp(prefix="settle-panel-")
        self.processes = []
        self.states = dict(states)
        self.deaf = {"garden-pump"}
        self.slow = {"hall-blind/position": 0.9}
        self.commands = []
        # A restarted gateway listens at the same address.
        (self.mqtt_holder, self.mqtt_port), (self.holder, self.port) = reserve_port(), reserve_port()
        self.token = token
        self.url = f"http://127.0.0.1:{self.port}/"
        os.mkdir(os.path.join(self.folder, "devices"))
        self.write("broker.conf", f"listener {self.mqtt_port} 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n")
        self.write("devices/home.yaml", devices)
        secret = ""
        if token:
            self.write("token", token + "\n")
            os.chmod(os.path.join(self.folder, "token"), 0o600)
            secret = f", token_file: {self.folder}/token"
        trusted = ", trusted: [127.0.0.1]" if IN_FRAME else ""
        self.write("settle.yaml", f'mqtt: {{url: "mqtt://127.0.0.1:{self.mqtt_port}"}}\nsocket: {self.folder}/settle.sock\n'
                   f'devices: devices\nhttp: {{listen: ["127.0.0.1:{self.port}"]{secret}{trusted}}}\n{lines}')
        self.broker = None
        self.gateway = None
        self.devices = None
        try:
            self.start_broker()
            self.start_devices()
            self.start_gateway()
            if os.environ.get("PANEL") == "source":
                self.serve_source()
            if IN_FRAME:
                self.enter_ingress()
        except BaseException:
            self.close()
            raise

    def serve_source(self):
        """Serves the files of the source tree instead of those that were built: `PANEL=source Tests/panel/run`."""
        server = Server(f"127.0.0.1:{self.port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}/"

    def enter_ingress(self):
        """Serves the page in a frame of Home Assistant: `PANEL=ingress HOST=homeassistant.local Tests/panel/run`."""
        supervisor = ingress.Supervisor(("127.0.0.1", 0), ("127.0.0.1", self.port))
        core = ingress.Core(("127.0.0.1", 0), ("127.0.0.1", supervisor.server_port))
        # The tests measure the page as wide as the window.
        core.width = 0
        if ingress.IS_ENCRYPTED:
            core.encrypt(self.folder)
        self.url = f"{'https' if ingress.IS_ENCRYPTED else 'http'}://{ingress.HOST}:{core.server_port}{ingress.PATH}/"

    def write(self, name, content):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(content)

    def start_broker(self):
        self.broker = subprocess.Popen([shutil.which("mosquitto") or "/usr/sbin/mosquitto", "-c", os.path.join(self.folder, "broker.conf")],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(self.broker)
        wait_for(lambda: connects(self.mqtt_port), what="the broker")

    def start_devices(self):
        self.devices = Client(self.mqtt_port, "devices", self.obey, ["cmd/#"])
        for key, value in self.states.items():
            self.devices.publish(f"state/{key}", value, retain=True)
        for device in {key.split("/")[0] for key in self.states}:
            self.devices.publish(f"state/{device}/status", "online", retain=True)
        # A broker reads from its clients in turns: a gateway that connects now would get older states after its commands.
        self.devices.flush()

    def start_gateway(self):
        with open(os.path.join(self.folder, "settled.log"), "ab") as log:
            self.gateway = subprocess.Popen([program(), "run", "--config", os.path.join(self.folder, "settle.yaml")],
                                            stdout=subprocess.DEVNULL, stderr=log)
        self.processes.append(self.gateway)
        wait_for(self.is_ready, what="the gateway: " + self.folder + "/settled.log")

    def stop_gateway(self, number=signal.SIGKILL):
        self.gateway.send_signal(number)
        self.gateway.wait(timeout=15)

    def is_ready(self):
        try:
            with urllib.request.urlopen(self.url + "readyz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def obey(self, topic, payload):
        """Handles a command to a device."""
        key = topic.removeprefix("cmd/")
        self.commands.append((key, payload))
        device = key.split("/")[0]
        if device in self.deaf or key.endswith("/command"):
            return
        timer = threading.Timer(self.slow.get(key, 0.03), self.report, [key, payload])
        timer.daemon = True
        timer.start()

    def report(self, key, value):
        self.states[key] = value
        try:
            self.devices.publish(f"state/{key}", value, retain=True)
        except OSError:
            pass

    def away(self, device, is_away=True):
        self.devices.publish(f"state/{device}/status", "offline" if is_away else "online", retain=True)

    def told(self, key):
        return [value for name, value in self.commands if name == key]

    def get(self, path):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers), timeout=10) as answer:
            return json.loads(answer.read())

    def put(self, path, document):
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        body = json.dumps(document).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, body, headers, method="PUT"), timeout=10) as answer:
            answer.read()

    def send(self, *changes):
        body = "".join(json.dumps(change) + "\n" for change in changes).encode()
        headers = {"Content-Type": "application/x-ndjson"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        with urllib.request.urlopen(urllib.request.Request(self.url + "v1/changes", body, headers), timeout=10) as answer:
            return answer.read().decode()

    def close(self):
        if self.devices:
            self.devices.close()
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
                process.wait(timeout=10)
        self.mqtt_holder.close()
        self.holder.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def connects(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False
