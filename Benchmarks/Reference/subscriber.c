// Settle
// SPDX-License-Identifier: Apache-2.0

// subscriber MODE PORT FILTER QOS END DONE: the least that a C program does with libmosquitto's own
// loop for each message it is sent.
//
//   count   counts it
//   lookup  finds its topic in a table and keeps the newest value
//   settle  the same, and publishes a topic's value to out/TOPIC once it was quiet for 300 ms
//
// A message to the topic END is answered with one to DONE. Ends with SIGTERM.

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "meter.h"
#include "queue.h"

static const uint64_t delay = 300 * 1000 * 1000;
static enum { count_only, lookup, settle } mode;
static const char *filter, *end_topic, *done_topic;
static int qos;
static struct queue queue;
static unsigned long messages;
static volatile sig_atomic_t is_ending;

static void on_connect(struct mosquitto *client, void *context, int code, int flags,
                       const mosquitto_property *properties) {
  (void)context, (void)flags, (void)properties;
  if (code) exit(1);
  mosquitto_subscribe_v5(client, NULL, filter, qos, MQTT_SUB_OPT_NO_LOCAL, NULL);
}

static void on_subscribe(struct mosquitto *client, void *context, int id, int count,
                         const int *granted, const mosquitto_property *properties) {
  (void)client, (void)context, (void)id, (void)count, (void)granted, (void)properties;
  printf("ready\n");
  fflush(stdout);
}

static void on_message(struct mosquitto *client, void *context,
                       const struct mosquitto_message *message,
                       const mosquitto_property *properties) {
  (void)context, (void)properties;
  messages++;
  if (mode != count_only) {
    int32_t slot =
        queue_slot(&queue, (const uint8_t *)message->topic, strlen(message->topic));
    int64_t value = message->payloadlen ? strtol(message->payload, NULL, 10) : 0;
    if (mode == settle) queue_enqueue(&queue, slot, value, now_ns());
    else queue.slots[slot].value = value;
  }
  if (strcmp(message->topic, end_topic) == 0)
    mosquitto_publish_v5(client, NULL, done_topic, 1, "1", 1, false, NULL);
}

static void publish_due(struct mosquitto *client) {
  uint64_t now = now_ns();
  int64_t value;
  for (int32_t slot; (slot = queue_next(&queue, now, &value)) >= 0;) {
    char topic[256], payload[24];
    snprintf(topic, sizeof topic, "out/%.*s", (int)queue.lengths[slot],
             (const char *)queue.arena + queue.offsets[slot]);
    int length = snprintf(payload, sizeof payload, "%lld", (long long)value);
    mosquitto_publish_v5(client, NULL, topic, length, payload, 1, false, NULL);
  }
}

static void on_signal(int number) {
  (void)number;
  is_ending = 1;
}

int main(int count, char **arguments) {
  if (count != 7) return fprintf(stderr, "usage: subscriber MODE PORT FILTER QOS END DONE\n"), 64;
  mode = strcmp(arguments[1], "settle") == 0   ? settle
         : strcmp(arguments[1], "lookup") == 0 ? lookup
                                               : count_only;
  filter = arguments[3], qos = atoi(arguments[4]);
  end_topic = arguments[5], done_topic = arguments[6];
  queue_init(&queue, 1 << 17, 1 << 23, delay);
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGTERM, &action, NULL);
  mosquitto_lib_init();
  struct mosquitto *client = mosquitto_new(NULL, true, NULL);
  mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
  mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
  mosquitto_connect_v5_callback_set(client, on_connect);
  mosquitto_subscribe_v5_callback_set(client, on_subscribe);
  mosquitto_message_v5_callback_set(client, on_message);
  if (mosquitto_connect(client, "127.0.0.1", atoi(arguments[2]), 600)) give_up("connect");
  while (!is_ending) {
    int wait = -1;
    if (mode == settle && queue.head >= 0) {
      publish_due(client);
      if (queue.head >= 0) {
        uint64_t now = now_ns(), due = queue.slots[queue.head].due;
        wait = due > now ? (int)((due - now) / 1000000) + 1 : 0;
      }
    }
    if (mosquitto_loop(client, wait, 1) && !is_ending) give_up("mosquitto_loop");
  }
  mosquitto_disconnect(client);
  mosquitto_destroy(client);
  fprintf(stderr, "%lu messages\n", messages);
}
