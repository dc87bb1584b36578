# Settle
# SPDX-License-Identifier: Apache-2.0
"""The bridge of somebody careful: paho, a dictionary in the order of deadlines, one sweeper.

paho_sweeper.py PORT QUIET_MS QOS: what comes on in/KEY goes to out/KEY once it was quiet.
"""

import sys
import threading
import time

import paho.mqtt.client as mqtt

port, quiet, qos = int(sys.argv[1]), int(sys.argv[2]) / 1000, int(sys.argv[3])
pending = {}
lock = threading.Lock()


def on_message(client, userdata, message):
    key = message.topic
    with lock:
        pending.pop(key, None)
        pending[key] = (time.monotonic() + quiet, message.payload)


def sweep():
    while True:
        due = []
        with lock:
            now = time.monotonic()
            for key, (deadline, value) in pending.items():
                if deadline > now:
                    break
                due.append((key, value))
            for key, _ in due:
                del pending[key]
        for key, value in due:
            client.publish("out/" + key[3:], value, qos)
        time.sleep(0.002)


client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
client.on_message = on_message
client.on_connect = lambda client, *rest: client.subscribe("in/#", qos)
client.on_subscribe = lambda *rest: print("ready", flush=True)
threading.Thread(target=sweep, daemon=True).start()
client.connect("127.0.0.1", port)
client.loop_forever()
