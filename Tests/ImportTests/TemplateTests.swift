// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import Import
import JSON
import Testing

/// The templates that a device file can express.
struct TemplateTests {
  @Test(arguments: [
    ("{{ value }}", TemplateForm.plain([])),
    ("{{value_json.POWER1}}", .plain(["POWER1"])),
    ("{{ value_json['a b'].c }}", .plain(["a b", "c"])),
    ("{{ value_json.list[2] }}", .plain(["list", "2"])),
    ("{{ value_json.x | float(0) | round(1) }}", .plain(["x"])),
    ("{{- value_json.x | default('off') -}}", .plain(["x"])),
    ("{{ value_json.v * 2 + 1 }}", .linear(path: ["v"], factor: 2, offset: 1)),
    ("{{ (value_json.v - 32) / 2 }}", .linear(path: ["v"], factor: 0.5, offset: -16)),
    ("{{ 100 - (value | int) }}", .linear(path: [], factor: -1, offset: 100)),
    // EMS-ESP, and zwave-js-ui.
    (
      "{{value_json.boiler.temp if value_json.boiler.temp is defined else 0}}",
      .plain(["boiler", "temp"])
    ),
    (
      "{{ (value_json['a'] if value_json['a'] is defined else 0) / 2 }}",
      .linear(path: ["a"], factor: 0.5, offset: 0)
    ),
    ("{{value_json['a b']|is_defined}}", .plain(["a b"])),
    (
      "{{ 'ON' if value_json.value == 'on' else 'OFF' }}",
      .condition(path: ["value"], equals: "on", then: "ON", otherwise: "OFF")
    ),
    (
      "{{ {0:'off', 1:'heat'}[value_json.value] | default('off') }}",
      .lookedUp(path: ["value"], [.init("0", "off"), .init("1", "heat")])
    ),
    // EMS-ESP: a circuit that is missing, and its presence.
    (
      "{{value_json['hc1']['t'] if value_json.hc1 is defined and value_json['hc1']['t'] is defined else 5}}",
      .plain(["hc1", "t"])
    ),
    (
      "{{'offline' if value_json.hc1 is undefined or value_json.hc1.mode is undefined else 'online'}}",
      .presence(path: ["hc1", "mode"], then: "online", otherwise: "offline")
    ),
    ("{{value_json['a'] if value_json['a'] is defined else false}}", .plain(["a"])),
    // OpenBeken.
    ("{{ '%0.2f'|format(float(value)*0.1) }}", .linear(path: [], factor: 0.1, offset: 0)),
    (
      #"{{ {1:'Ok', 0:'Bad'}[(value | int(99999))] | default("Undefined ["~value~"]") }}"#,
      .lookedUp(path: [], [.init("1", "Ok"), .init("0", "Bad")])
    ),
    (
      "{% if value == '0' %}\n Low\n{% elif value == '1' %}\n High\n{% else %}\n ?\n{% endif %}",
      .lookedUp(path: [], [.init("0", "Low"), .init("1", "High")])
    ),
    (
      "{{ value_json.gain | float | multiply(2.5) }}",
      .linear(path: ["gain"], factor: 2.5, offset: 0)
    ),
    (
      "{%if value_json.on%}on{%else%}off{%endif%}",
      .condition(path: ["on"], equals: true, then: "on", otherwise: "off")
    ),
  ])
  func `values are picked, scaled or looked up`(template: String, form: TemplateForm) {
    #expect(TemplateForm.reading(template) == form)
  }

  @Test(arguments: [
    "{{ value_json.a if value_json.a else 0 }}", "{% if value %}1{% endif %}",
    "{{ value_json.Color.split(',')[0] }}", "{{ states('sensor.x') }}",
    "{{ value | regex_replace }}", "{{ value_json.a if value_json.b is defined else 0 }}",
    "{{ value_json.a if value_json.a is undefined else 0 }}", "{{ 'a' if value = 1 else 'b' }}",
    "{{ 1 if value == 1 else 0 }}", "{{ 'a' if value == 1 }}",
    "{{ value }} {{ value }}", "plain", "{{ value_json.a * value_json.b }}", "{{ value / 0 }}",
    "{% if value > 3 %}a{% else %}b{% endif %}", "{% if value == 1 %}a", "{% if value == 1 %}",
    "{% for a in b %}c{% endfor %}",
    "{% if value == 1 %}a{% elif value_json.b == 2 %}b{% else %}c{% endif %}",
    "{% if value == 1 %}{{ value }}{% else %}c{% endif %}", "{% else %}",
    "{% if a %}{% else %}{% else %}{% endif %}",
    "{# a #}", "{{ '%s'|format(value) }}", "{{ }}", "{{",
    "{{ ((((((((((((((((((((((((value)))))))))))))))))))))))) }}",
  ])
  func `templates that are too complex are skipped`(template: String) {
    #expect(TemplateForm.reading(template) == nil)
  }

  @Test(arguments: [
    ("'ON' if value_json.v == 'on' else 'OFF'", true),
    ("'OFF' if value_json.v == false else 'ON'", true),
    ("'ON' if value_json.v else 'OFF'", true), ("'ON' if value_json.v == 'off' else 'OFF'", false),
    // A level of which only 0 is known, and words that the commands do not have.
    ("'OFF' if value_json.v == 0 else 'ON'", false),
    ("'yes' if value_json.v == 'on' else 'no'", false),
  ])
  func `a condition is a state where it means the words of the commands`(
    template: String,
    isState: Bool
  ) {
    var power = ImportedProperty("power", type: "boolean")
    power["on"] = "ON"
    power["off"] = "OFF"
    #expect(power.path(of: TemplateForm.reading("{{ \(template) }}")) == (isState ? ["v"] : nil))
  }

  @Test(arguments: [
    (#"{"t": {{ value }}}"#, TemplateForm.structure(.object(["t": "$value"]), isText: false)),
    (#"{"t": "{{ value }}", "n": 1}"#, .structure(.object(["t": "$value", "n": 1]), isText: true)),
    (
      #"{"t":{{value*1000}},"save":true}"#,
      .structure(.object(["t": "$value", "save": true]), isText: false, factor: 1000, offset: 0)
    ),
    ("{{ position / 100 * 99 }}", .linear(path: [], factor: 0.99, offset: 0)),
  ])
  func `command templates may be structures with the value`(template: String, form: TemplateForm) {
    #expect(TemplateForm.making(template, of: ["value", "position"]) == form)
  }
}
