#!/bin/sh
# Starts the gateway as an app of Home Assistant. The Supervisor passes the options in /data/options.json and the
# broker on request; /config is the app's folder among those that people edit. Settings are written once.
set -eu

say() { echo "settle: $*"; }
option() { jq -r "(.$1 // empty) | tostring" /data/options.json; }
# A field of what the Supervisor says of the broker.
broker() { printf %s "$service" | jq -r "(.data.$1 // empty) | tostring"; }

# The app's own settings, written once.
own=/config/settle.yaml
mkdir -p /config/devices /run/settle
if [ ! -e $own ]; then
  cat >$own.new <<'SETTINGS'
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
  mv $own.new $own
  say "Wrote $own. Devices that announce themselves are added to /config/devices."
fi
settings=$own
other=$(option settings_file)
[ -z "$other" ] || settings=/config/$other
if [ ! -f "$settings" ]; then
  say "The option \"Settings file\" names $settings, which does not exist. Copy settle.yaml to it, and edit the copy." >&2
  exit 78
fi

# The broker: Home Assistant's, unless the options name another.
SETTLE_MQTT_URL=$(option broker)
SETTLE_MQTT_USERNAME=$(option broker_username)
SETTLE_MQTT_PASSWORD=$(option broker_password)
if [ -z "$SETTLE_MQTT_URL" ]; then
  trap 'exit 0' TERM INT
  tries=0
  until service=$(curl --silent --show-error --fail-with-body --max-time 10 \
    --header "Authorization: Bearer ${SUPERVISOR_TOKEN:-}" http://supervisor/services/mqtt); do
    tries=$((tries + 1))
    if [ $tries -ge 12 ]; then
      say "Home Assistant knows no MQTT broker: $(printf %s "$service" | jq -r '.message // empty' 2>/dev/null)" >&2
      say "Install the app \"Mosquitto broker\", start it, and start this app again; or give the address of another broker as an option." >&2
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
fi
export SETTLE_MQTT_URL SETTLE_MQTT_USERNAME SETTLE_MQTT_PASSWORD
say "The broker is $SETTLE_MQTT_URL."

# In between: routes in the settings, and the lines that Zigbee2MQTT needs, in the log. The mark has the file with the
# routes. What they leave at the broker can go once Zigbee2MQTT is back, which is tried at each start.
mark=/data/in-between
undone=/data/in-between-undone
if [ "$(option in_between)" = true ]; then
  rm -f $undone
  if settle import --config "$settings" --in-between; then
    printf %s "$settings" >$mark
    sed -i 's/^discovery: {}\(\r\{0,1\}\)$/# discovery: {}\1/' "$settings"
    ! grep -q '^discovery:' "$settings" ||
      say "The settings still have \"discovery\": Home Assistant shows the entities of both programs." >&2
  else
    say "In between: the lines above say what is missing. The gateway starts all the same." >&2
  fi
elif [ -e $mark ]; then
  routed=$(cat $mark)
  if settle import --config "$routed" --in-between --undo; then
    sed -i 's/^# discovery: {}/discovery: {}/' "$routed"
    touch $undone
    rm $mark
    say "Put the lines back, restart Zigbee2MQTT, and restart this app, which then removes what is left."
  else
    say "Still in between: the lines above say why. The gateway starts all the same." >&2
  fi
elif [ -e $undone ] && settle import --config "$settings" --in-between --undo; then
  rm $undone
fi

verbose=
[ "$(option log_level)" != debug ] || verbose=--verbose
exec settle run --config "$settings" $verbose
