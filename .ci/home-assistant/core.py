# Settle
# SPDX-License-Identifier: Apache-2.0

"""A Home Assistant core on loopback: installed, configured, started, asked."""

import base64
import datetime
import glob
import hashlib
import hmac
import http.client
import json
import os
import shutil
import subprocess
import sys
import time
import uuid

from loopback import reserve_port
from roots import ROOT, Missing, debian_root

HERE = os.path.dirname(os.path.abspath(__file__))
#: The releases of Debian that have a version of Python.
SUITES = {"3.13": "trixie", "3.14": "sid"}


def _base64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def python(wanted):
    """A Python of this version, such as 3.13; `None` if there is none."""
    others = glob.glob(os.path.expanduser(f"~/.pyenv/versions/{wanted}.*/bin/python3"))
    for name in (sys.executable, f"python{wanted}", *others):
        path = shutil.which(name)
        if path:
            found = subprocess.run(
                [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                capture_output=True, text=True,
            )
            if found.stdout.strip() == wanted:
                return path
    return None


class Environment:
    """Exactly what `version`.txt lists, for a Python of this machine."""

    def __init__(self, version, interpreter):
        self.version, self.interpreter = version, interpreter
        #: Its folder, as it sees it itself and as it is here; and the folder of this file.
        self.place = self.outside = f"{ROOT}/.build/home-assistant/{version}"
        self.here = HERE

    def install(self):
        with open(f"{HERE}/{self.version}.txt") as file:
            listed = file.read()
        mark = f"{self.outside}/installed"
        if os.path.exists(mark) and open(mark).read() == listed:
            return
        shutil.rmtree(self.outside, ignore_errors=True)
        subprocess.run(self.inside([self.interpreter, "-m", "venv", self.place]), check=True)
        subprocess.run(
            self.inside(
                [f"{self.place}/bin/python", "-m", "pip", "install", "--quiet", "--no-deps",
                 "--no-compile", "--prefer-binary", "--disable-pip-version-check",
                 "-r", f"{self.here}/{self.version}.txt"]
            ),
            check=True,
        )
        with open(mark, "w") as file:
            file.write(listed)

    def inside(self, command):
        """The command as this machine has to run it."""
        return command

    def core(self, folder):
        """The command that starts a core with the configuration in `folder`."""
        return [f"{self.place}/bin/python", f"{self.here}/launch.py", "-c", folder, "--skip-pip"]


class RootEnvironment(Environment):
    """The same for the Python of another release of Debian, in a root of that release."""

    def __init__(self, version, wanted, suite):
        super().__init__(version, f"/usr/bin/python{wanted}")
        self.root = debian_root(suite, f"python{wanted}-venv")
        self.place, self.here = f"/opt/{version}", "/mnt"
        self.outside = self.root + self.place

    def inside(self, command, folder=HERE):
        os.makedirs(f"{self.root}/etc/ssl/certs", exist_ok=True)
        for name in ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"):
            if os.path.exists(name):
                shutil.copy(name, self.root + name)
        mounts = (("--bind", HERE, "mnt"), ("--bind", folder, "srv"), ("--rbind", "/dev", "dev"),
                  ("-t proc", "proc", "proc"))
        script = " && ".join(f"mount {how} {what} {self.root}/{place}" for how, what, place in mounts)
        return ["unshare", "--mount", "sh", "-c", f'{script} && exec chroot {self.root} "$@"', "sh",
                *command]

    def core(self, folder):
        return self.inside(super().core("/srv"), folder)


def environment(version, wanted):
    """What runs this version, installed the first time; `Missing` if there is no Python for it."""
    interpreter = python(wanted)
    if interpreter:
        found = Environment(version, interpreter)
    elif wanted not in SUITES:
        raise Missing(f"it needs python{wanted}")
    elif os.geteuid() != 0:
        raise Missing(f"it needs python{wanted}, or root to make a root of Debian with it")
    else:
        found = RootEnvironment(version, wanted, SUITES[wanted])
    found.install()
    return found


class HomeAssistant:
    """One configuration folder, in which the core may be started more than once."""

    def __init__(self, environment, folder, broker_port):
        self.environment = environment
        self.folder = folder
        self._holder, self.port = reserve_port()
        self.log = f"{folder}/core.log"
        self._process = None
        self._connection = None
        os.makedirs(f"{folder}/.storage")
        with open(f"{folder}/configuration.yaml", "w") as file:
            file.write(
                "homeassistant: {name: Check, latitude: 0, longitude: 0, elevation: 0,\n"
                "  unit_system: metric, time_zone: UTC}\n"
                f"http: {{server_host: 127.0.0.1, server_port: {self.port}}}\n"
                "api:\n"
                "logger: {default: warning}\n"
            )
        self._store("core.config_entries", {"entries": [{
            "entry_id": "1", "version": 1, "minor_version": 1, "domain": "mqtt", "title": "broker",
            "data": {"broker": "127.0.0.1", "port": broker_port, "discovery": True}, "options": {},
            "pref_disable_new_entities": False, "pref_disable_polling": False, "source": "user",
            "unique_id": None, "disabled_by": None,
        }]})
        self._token = self._owner()

    def _store(self, name, data, version=1):
        with open(f"{self.folder}/.storage/{name}", "w") as file:
            json.dump({"version": version, "minor_version": 1, "key": name, "data": data}, file)

    def _owner(self):
        """Makes an owner with a token of long life, and returns the token."""
        user, token, key = uuid.uuid4().hex, uuid.uuid4().hex, uuid.uuid4().hex * 2
        now = datetime.datetime.now(datetime.timezone.utc).isoformat()
        groups = {"admin": "Administrators", "users": "Users", "read-only": "Read Only"}
        self._store("auth", {
            "users": [{
                "id": user, "group_ids": ["system-admin"], "is_owner": True, "is_active": True,
                "name": "check", "system_generated": False, "local_only": False,
            }],
            "groups": [{"id": f"system-{id}", "name": name} for id, name in groups.items()],
            "credentials": [],
            "refresh_tokens": [{
                "id": token, "user_id": user, "client_id": None, "client_name": "check",
                "client_icon": None, "token_type": "long_lived_access_token", "created_at": now,
                "access_token_expiration": 315360000.0, "token": uuid.uuid4().hex * 4,
                "jwt_key": key, "last_used_at": None, "last_used_ip": None, "credential_id": None,
                "version": "1",
            }],
        })
        self._store("onboarding", {"done": ["user", "core_config", "analytics", "integration"]}, 4)
        now = int(time.time())
        head, body = ({"alg": "HS256", "typ": "JWT"}, {"iss": token, "iat": now, "exp": now + 86400})
        text = ".".join(_base64(json.dumps(part).encode()) for part in (head, body))
        return text + "." + _base64(hmac.new(key.encode(), text.encode(), hashlib.sha256).digest())

    def start(self):
        with open(self.log, "a") as log:
            self._process = subprocess.Popen(
                self.environment.core(self.folder),
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            )
        end = time.monotonic() + 180
        while time.monotonic() < end:
            if self._process.poll() is not None:
                break
            try:
                if self.ask("GET", "config")["state"] == "RUNNING":
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise RuntimeError("Home Assistant did not start:\n" + open(self.log).read()[-3000:])

    def stop(self):
        if self._connection:
            # An open connection is waited for.
            self._connection.close()
            self._connection = None
        if self._process and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def registered(self, entity):
        """What the core has stored of an entity, while it is stopped."""
        with open(f"{self.folder}/.storage/core.entity_registry") as file:
            entries = json.load(file)["data"]["entities"]
        return next((e for e in entries if e["entity_id"] == entity), {})

    def registry(self):
        """The identifiers of all entities by platform and unique id, while the core is stopped."""
        with open(f"{self.folder}/.storage/core.entity_registry") as file:
            entries = json.load(file)["data"]["entities"]
        return {(e["entity_id"].split(".")[0], e["unique_id"]): e["entity_id"] for e in entries}

    def rename(self, entity, new):
        """Gives an entity another identifier, while the core is stopped."""
        path = f"{self.folder}/.storage/core.entity_registry"
        with open(path) as file:
            registry = json.load(file)
        for entry in registry["data"]["entities"]:
            if entry["entity_id"] == entity:
                entry["entity_id"] = new
        with open(path, "w") as file:
            json.dump(registry, file)

    def ask(self, method, path, data=None):
        """The answer; `None` if there is no such thing."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            self._connection.request(
                method, f"/api/{path}", None if data is None else json.dumps(data),
                {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
            )
            answer = self._connection.getresponse()
            body = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self._connection = None
            raise OSError(str(error)) from error
        if answer.status == 404:
            return None
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path} {data}: {answer.status} {body}")
        return json.loads(body) if answer.getheader("Content-Type", "").startswith(
            "application/json") else body

    def state(self, entity):
        return self.ask("GET", f"states/{entity}")

    def template(self, text):
        return self.ask("POST", "template", {"template": text})

    def count(self):
        """How many entities have a state."""
        return int(self.template("{{ states | count }}"))

    def unavailable(self):
        """The entities that are unavailable."""
        found = self.template("{{ states | selectattr('state', 'eq', 'unavailable')"
                              " | map(attribute='entity_id') | join(' ') }}")
        return set(found.split() if isinstance(found, str) else [])

    def call(self, service, entity, **data):
        domain, name = service.split(".")
        return self.ask("POST", f"services/{domain}/{name}", {"entity_id": entity, **data})
