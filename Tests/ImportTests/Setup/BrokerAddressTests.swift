// Settle
// SPDX-License-Identifier: Apache-2.0

import Import
import Testing

/// Addresses as people type them.
struct BrokerAddressTests {
  @Test(arguments: [
    ("mqtt://127.0.0.1:1883", "mqtt://127.0.0.1:1883", nil, nil),
    ("broker.lan", "mqtt://broker.lan", nil, nil),
    ("broker.lan:1884", "mqtt://broker.lan:1884", nil, nil),
    ("mqtts://anna@broker.lan", "mqtts://broker.lan", "anna", nil),
    ("mqtt://anna:geheim@[fe80::1]:1883", "mqtt://[fe80::1]:1883", "anna", "geheim"),
    ("anna:geheim@broker.lan", "mqtt://broker.lan", "anna", "geheim"),
    ("mqtt://a%40b:p%3a%2Fs@h", "mqtt://h", "a@b", "p:/s"),
    ("mqtt://anna:p@ss:w@h", "mqtt://h", "anna", "p@ss:w"),
    ("mqtt://anna:100%@h", "mqtt://h", "anna", "100%"),
    ("unix:/run/mosquitto/mqtt.sock", "unix:/run/mosquitto/mqtt.sock", nil, nil),
    ("http://h", "http://h", nil, nil),
  ])
  func `user name and password leave the address`(
    text: String,
    url: String,
    username: String?,
    password: String?
  ) {
    let address = BrokerAddress(text)
    #expect(address.url == url)
    #expect(address.username == username)
    #expect(address.password == password)
  }
}
