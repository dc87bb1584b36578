# Settle
# SPDX-License-Identifier: Apache-2.0
"""The bridge that a tutorial shows: paho, and one threading.Timer per key.

paho_timers.py PORT QUIET_MS QOS: what comes on in/KEY goes to out/KEY once it was quiet.
"""

import sys
import threading

import paho.mqtt.client as mqtt

port, quiet, qos = int(sys.argv[1]), int(sys.argv[2]) / 1000, int(sys.argv[3])
timers = {}
lock = threading.Lock()


def on_message(client, userdata, message):
    key, value = message.topic[3:], message.payload
    with lock:
        timer = timers.get(key)
        if timer:
            timer.cancel()
        timer = threading.Timer(quiet, fire, (key, value))
        timer.daemon = True
        timers[key] = timer
        timer.start()


def fire(key, value):
    with lock:
        timers.pop(key, None)
    client.publish("out/" + key, value, qos)


client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
client.on_message = on_message
client.on_connect = lambda client, *rest: client.subscribe("in/#", qos)
client.on_subscribe = lambda *rest: print("ready", flush=True)
client.connect("127.0.0.1", port)
client.loop_forever()
