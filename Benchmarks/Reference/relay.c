// Settle
// SPDX-License-Identifier: Apache-2.0

// relay PORT SOCKET: a C program in the gateway's place, without a queue. Listens on the unix socket
// SOCKET, takes one client, and publishes each line that it sends, as it is, to cmd/0 at QoS 1.

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "meter.h"

int main(int count, char **arguments) {
  if (count != 3) return fprintf(stderr, "usage: relay PORT SOCKET\n"), 64;
  mosquitto_lib_init();
  struct mosquitto *broker = mosquitto_new(NULL, true, NULL);
  mosquitto_int_option(broker, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
  mosquitto_int_option(broker, MOSQ_OPT_TCP_NODELAY, 1);
  if (mosquitto_connect(broker, "127.0.0.1", atoi(arguments[1]), 600)) give_up("connect");
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", arguments[2]);
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 1)) give_up("bind");
  int client = accept(listener, NULL, NULL);
  for (;;) {
    struct pollfd events[2] = {{client, POLLIN, 0}, {mosquitto_socket(broker), POLLIN, 0}};
    if (mosquitto_want_write(broker)) events[1].events |= POLLOUT;
    if (poll(events, 2, -1) < 0) give_up("poll");
    if (events[1].revents & POLLIN && mosquitto_loop_read(broker, 1)) give_up("loop_read");
    if (events[1].revents & POLLOUT && mosquitto_loop_write(broker, 1)) give_up("loop_write");
    if (events[0].revents) {
      char line[512];
      ssize_t length = read(client, line, sizeof line);
      if (length <= 0) return 0;
      if (line[length - 1] == '\n') length--;
      mosquitto_publish_v5(broker, NULL, "cmd/0", (int)length, line, 1, false, NULL);
    }
  }
}
