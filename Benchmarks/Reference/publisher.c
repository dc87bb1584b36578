// Settle
// SPDX-License-Identifier: Apache-2.0

// publisher PORT KEYS WINDOW: publishes one message to each of KEYS topics at QoS 1 and MQTT 5, with at
// most WINDOW of them unacknowledged, and tells how long that took from the first to the last
// acknowledgement.

#include <mosquitto.h>
#include <mqtt_protocol.h>

#include "meter.h"

static long acknowledged;
static int is_connected;

static void on_connect(struct mosquitto *client, void *context, int code, int flags,
                       const mosquitto_property *properties) {
  (void)client, (void)context, (void)flags, (void)properties;
  if (code) exit(1);
  is_connected = 1;
}

static void on_publish(struct mosquitto *client, void *context, int id, int code,
                       const mosquitto_property *properties) {
  (void)client, (void)context, (void)id, (void)code, (void)properties;
  acknowledged++;
}

int main(int count, char **arguments) {
  if (count != 4) return fprintf(stderr, "usage: publisher PORT KEYS WINDOW\n"), 64;
  long keys = atol(arguments[2]), window = atol(arguments[3]);
  mosquitto_lib_init();
  struct mosquitto *client = mosquitto_new(NULL, true, NULL);
  mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
  mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
  mosquitto_connect_v5_callback_set(client, on_connect);
  mosquitto_publish_v5_callback_set(client, on_publish);
  if (mosquitto_connect(client, "127.0.0.1", atoi(arguments[1]), 600)) give_up("connect");
  while (!is_connected)
    if (mosquitto_loop(client, -1, 1)) give_up("mosquitto_loop");
  uint64_t start = now_ns(), cpu = cpu_ns();
  for (long sent = 0; acknowledged < keys;) {
    for (; sent < keys && sent - acknowledged < window; sent++) {
      char topic[32], payload[24];
      snprintf(topic, sizeof topic, "cmd/%ld", sent);
      int length = snprintf(payload, sizeof payload, "%ld", sent % 1000);
      if (mosquitto_publish_v5(client, NULL, topic, length, payload, 1, false, NULL))
        give_up("mosquitto_publish");
    }
    if (mosquitto_loop(client, -1, 1)) give_up("mosquitto_loop");
  }
  printf("{\"seconds\": %.6f, \"cpu_ns\": %llu}\n", (double)(now_ns() - start) / 1e9,
         (unsigned long long)(cpu_ns() - cpu));
  mosquitto_destroy(client);
}
