// Settle
// SPDX-License-Identifier: Apache-2.0

// flood PORT TOTAL KEYS QOS BEFORE AFTER END DONE: publishes TOTAL messages to BEFOREnAFTER, n being
// 0..<KEYS in turn, as fast as the broker takes them, then one to END, and waits for one on DONE.
// The payloads are 0, 1, 2, … below a thousand. Speaks MQTT 3.1.1 by itself, so that it is faster than
// what it feeds; at QoS 1, a thousand messages may wait for their acknowledgement.

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "meter.h"

enum { batch = 200, window = 1000 };

static int broker;
static long acknowledged;
static int is_done, is_subscribed, is_connected;
static uint8_t received[1 << 16];
static size_t received_count;

static size_t packet(uint8_t *bytes, uint8_t type, const uint8_t *body, size_t count) {
  size_t length = 0;
  bytes[length++] = type;
  size_t rest = count;
  do {
    bytes[length++] = (uint8_t)((rest & 127) | (rest > 127 ? 128 : 0));
    rest >>= 7;
  } while (rest);
  memcpy(bytes + length, body, count);
  return length + count;
}

static size_t text(uint8_t *bytes, const char *text) {
  size_t count = strlen(text);
  bytes[0] = (uint8_t)(count >> 8), bytes[1] = (uint8_t)count;
  memcpy(bytes + 2, text, count);
  return count + 2;
}

static size_t publish(uint8_t *bytes, const char *topic, const char *payload, int qos, long number) {
  uint8_t body[600];
  size_t count = text(body, topic);
  if (qos) {
    unsigned id = (unsigned)(number % 65535) + 1;
    body[count++] = (uint8_t)(id >> 8), body[count++] = (uint8_t)id;
  }
  memcpy(body + count, payload, strlen(payload));
  return packet(bytes, (uint8_t)(0x30 | qos << 1), body, count + strlen(payload));
}

// Looks at every whole packet that has come.
static void take(void) {
  ssize_t count = recv(broker, received + received_count, sizeof received - received_count,
                       MSG_DONTWAIT);
  if (count == 0 || (count < 0 && errno != EAGAIN)) give_up("recv");
  if (count > 0) received_count += (size_t)count;
  size_t start = 0;
  while (received_count - start >= 2) {
    size_t head = 1, length = 0, shift = 0;
    for (;; shift += 7) {
      if (start + head >= received_count) goto partial;
      uint8_t byte = received[start + head++];
      length |= (size_t)(byte & 127) << shift;
      if (byte < 128) break;
    }
    if (received_count - start < head + length) break;
    switch (received[start] & 0xF0) {
    case 0x20: is_connected = 1; break;
    case 0x30: is_done = 1; break;
    case 0x40: acknowledged++; break;
    case 0x90: is_subscribed = 1; break;
    }
    start += head + length;
  }
partial:
  memmove(received, received + start, received_count - start);
  received_count -= start;
}

static void wait_for(short events) {
  struct pollfd request = {broker, events, 0};
  if (poll(&request, 1, 60000) == 0) {
    fprintf(stderr, "flood: nothing came for a minute\n");
    exit(1);
  }
  if (request.revents & ~POLLOUT) take();
}

static void put(const uint8_t *bytes, size_t count) {
  while (count) {
    ssize_t taken = send(broker, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (taken > 0) bytes += taken, count -= (size_t)taken;
    else if (errno == EAGAIN) wait_for(POLLIN | POLLOUT);
    else give_up("send");
  }
}

int main(int count, char **arguments) {
  if (count != 9)
    return fprintf(stderr, "usage: flood PORT TOTAL KEYS QOS BEFORE AFTER END DONE\n"), 64;
  long total = atol(arguments[2]), keys = atol(arguments[3]);
  int qos = atoi(arguments[4]);
  broker = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(arguments[1])),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (connect(broker, (void *)&address, sizeof address)) give_up("connect");
  int one = 1;
  setsockopt(broker, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);

  uint8_t body[600], bytes[600];
  char name[32];
  snprintf(name, sizeof name, "flood-%d", (int)getpid());
  size_t length = text(body, "MQTT");
  memcpy(body + length, "\4\2\0\0", 4); // 3.1.1, a clean session, no keep-alive
  length += 4;
  length += text(body + length, name);
  put(bytes, packet(bytes, 0x10, body, length));
  while (!is_connected) wait_for(POLLIN);
  body[0] = 0, body[1] = 1;
  length = 2 + text(body + 2, arguments[8]);
  body[length++] = 0;
  put(bytes, packet(bytes, 0x82, body, length));
  while (!is_subscribed) wait_for(POLLIN);

  static uint8_t out[batch * 600];
  uint64_t start = now_ns();
  for (long sent = 0; sent < total;) {
    size_t used = 0;
    for (long room = batch; room && sent < total; room--, sent++) {
      char topic[400], payload[16];
      snprintf(topic, sizeof topic, "%s%ld%s", arguments[5], sent % keys, arguments[6]);
      snprintf(payload, sizeof payload, "%ld", sent / keys % 1000);
      used += publish(out + used, topic, payload, qos, sent);
    }
    put(out, used);
    while (qos && sent - acknowledged >= window) wait_for(POLLIN);
  }
  put(out, publish(out, arguments[7], "1", qos, total));
  while (!is_done || (qos && acknowledged <= total)) wait_for(POLLIN);
  printf("{\"seconds\": %.6f, \"cpu_ns\": %llu}\n", (double)(now_ns() - start) / 1e9,
         (unsigned long long)cpu_ns());
}
