#!/bin/sh
# Starts the gateway as an app of Home Assistant. The Supervisor passes the options in /data/options.json and the
# broker on request; /config is the app's folder among those that people edit. Settings are written once.
set -eu

say() { echo "settle: $*"; }
option() { jq -r "(.$1 // empty) | tostring" /data/options.json; }
# A field of what the Supervisor says of the broker.
broker() { printf %s "$service" | jq -r "(.data.$1 // empty) | tostring"; }

tries=0
until service=$(curl --silent --show-error --fail-with-body --max-time 10 \
  --header "Authorization: Bearer ${SUPERVISOR_TOKEN:-}" http://supervisor/services/mqtt); do
  tries=$((tries + 1))
  if [ $tries -ge 12 ]; then
    say "Home Assistant knows no MQTT broker: $(printf %s "$service" | jq -r '.message // empty' 2>/dev/null)" >&2
    say "Install the app \"Mosquitto broker\", start it, and start this app again." >&2
    exit 69
  fi
  [ $tries -gt 1 ] || say "Waiting for Home Assistant to name its MQTT broker."
  sleep 5
done
scheme=mqtt
[ "$(broker ssl)" != true ] || scheme=mqtts
SETTLE_MQTT_URL=$scheme://$(broker host):$(broker port)
SETTLE_MQTT_USERNAME=$(broker username)
SETTLE_MQTT_PASSWORD=$(broker password)
export SETTLE_MQTT_URL SETTLE_MQTT_USERNAME SETTLE_MQTT_PASSWORD
say "The broker is $SETTLE_MQTT_URL."

own=/config/settle.yaml
if [ ! -e $own ]; then
  cat >$own <<'SETTINGS'
# Settings of the gateway, written when the app started first. They are yours: the app changes only the line
# "discovery", and only if it is as below. Broker, user and password come from Home Assistant.

devices: devices        # the folder beside this file; its *.yaml describe the devices
import: auto            # devices that are announced later appear by themselves

# Each device appears in Home Assistant too. With "in between" Zigbee2MQTT's own entities are used instead.
discovery: {}

# A Zigbee mesh carries few messages at a time, so its devices share a window, which adapts.
lanes:
  zigbee: {window: auto}

# What was accepted survives a crash.
journal: {path: /data/journal.db}

# The panel. Only Home Assistant reaches it, which has asked for a password already.
http: {listen: ["0.0.0.0:8484"], trusted: [172.30.32.2]}

shutdown: {timeout: 20s}
SETTINGS
  mkdir -p /config/devices
  say "Wrote $own. Devices that announce themselves are added to /config/devices."
fi

settings=$own
other=$(option settings_file)
[ -z "$other" ] || settings=/config/$other
mkdir -p /run/settle

# In between: routes in the settings, and the lines that Zigbee2MQTT needs, in the log.
mark=/data/in-between
if [ "$(option in_between)" = true ]; then
  sed -i 's/^discovery: {}$/# discovery: {}/' "$settings"
  if settle import --config "$settings" --in-between; then touch $mark; else
    say "Not in between yet; the lines above say why. The gateway starts all the same." >&2
  fi
elif [ -e $mark ]; then
  sed -i 's/^# discovery: {}$/discovery: {}/' "$settings"
  if settle import --config "$settings" --in-between --undo; then rm $mark; else
    say "Still in between; the lines above say why. The gateway starts all the same." >&2
  fi
fi

verbose=
[ "$(option log_level)" != debug ] || verbose=--verbose
exec settle run --config "$settings" $verbose
