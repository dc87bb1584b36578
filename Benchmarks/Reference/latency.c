// Settle
// SPDX-License-Identifier: Apache-2.0

// latency PORT GATEWAY RELAY ROUNDS: how long one value takes to a subscriber, by three ways in turn:
// published here, sent to the gateway's control socket GATEWAY as a change without a quiet period, and
// sent to the relay's socket RELAY. All at QoS 1; the subscriber is in this process. Nanoseconds.

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "meter.h"

static long wanted;
static uint64_t arrived;
static int is_subscribed;

static void on_subscribe(struct mosquitto *client, void *context, int id, int count,
                         const int *granted, const mosquitto_property *properties) {
  (void)client, (void)context, (void)id, (void)count, (void)granted, (void)properties;
  is_subscribed = 1;
}

static void on_message(struct mosquitto *client, void *context,
                       const struct mosquitto_message *message,
                       const mosquitto_property *properties) {
  (void)client, (void)context, (void)properties;
  char text[32] = {0};
  memcpy(text, message->payload, message->payloadlen < 31 ? (size_t)message->payloadlen : 31);
  if (atol(text) == wanted) arrived = now_ns();
}

static struct mosquitto *connected(int port) {
  struct mosquitto *client = mosquitto_new(NULL, true, NULL);
  mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
  mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
  mosquitto_subscribe_v5_callback_set(client, on_subscribe);
  mosquitto_message_v5_callback_set(client, on_message);
  if (mosquitto_connect(client, "127.0.0.1", port, 600)) give_up("connect");
  return client;
}

static int opened(const char *path) {
  int client = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  if (connect(client, (void *)&address, sizeof address)) give_up(path);
  return client;
}

int main(int count, char **arguments) {
  if (count != 5) return fprintf(stderr, "usage: latency PORT GATEWAY RELAY ROUNDS\n"), 64;
  enum { direct, gateway, relay, ways };
  int port = atoi(arguments[1]);
  size_t rounds = (size_t)atol(arguments[4]);
  mosquitto_lib_init();
  struct mosquitto *publisher = connected(port), *subscriber = connected(port);
  int sockets[ways] = {-1, opened(arguments[2]), opened(arguments[3])};
  mosquitto_subscribe_v5(subscriber, NULL, "cmd/#", 0, 0, NULL);
  while (!is_subscribed) {
    mosquitto_loop(subscriber, 10, 1);
    mosquitto_loop(publisher, 10, 1);
  }
  uint64_t *values[ways];
  for (int way = 0; way < ways; way++) values[way] = malloc(rounds * sizeof(uint64_t));
  for (size_t round = 0; round < rounds; round++) {
    for (int way = 0; way < ways; way++) {
      char line[160];
      int length;
      wanted = (long)(round * ways) + way + 1;
      arrived = 0;
      uint64_t start = now_ns();
      if (way == direct) {
        length = snprintf(line, sizeof line, "%ld", wanted);
        mosquitto_publish_v5(publisher, NULL, "cmd/0", length, line, 1, false, NULL);
      } else {
        length = way == relay
                     ? snprintf(line, sizeof line, "%ld\n", wanted)
                     : snprintf(line, sizeof line,
                                "{\"key\":\"dev%zu/level\",\"set\":%ld,\"now\":true}\n",
                                round % 100, wanted);
        if (write(sockets[way], line, (size_t)length) != length) give_up("write");
      }
      while (!arrived) {
        struct pollfd request = {mosquitto_socket(subscriber), POLLIN, 0};
        if (poll(&request, 1, 5000) == 0) {
          fprintf(stderr, "latency: nothing came for five seconds\n");
          return 1;
        }
        if (mosquitto_loop_read(subscriber, 1)) give_up("loop_read");
      }
      values[way][round] = arrived - start;
      // What follows a value, such as acknowledgements, is over before the next.
      usleep(1500 + (unsigned)(round * 7919 % 1000));
      if (way == direct) mosquitto_loop(publisher, 0, 1);
      char replies[4096];
      if (way == gateway && read(sockets[way], replies, sizeof replies) <= 0) give_up("read");
      mosquitto_loop_misc(subscriber);
    }
  }
  static const char *const names[ways] = {"direct", "gateway", "relay"};
  for (int way = 0; way < ways; way++) {
    printf("%s\"%s\": {", way ? ", " : "{", names[way]);
    print_percentiles(values[way], rounds);
    printf("}");
  }
  printf("}\n");
}
