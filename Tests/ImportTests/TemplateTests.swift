// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import Import
import JSON
import Testing
import Values

/// What device files say of Home Assistant's templates.
struct TemplateTests {
  private static func property(_ fields: String) throws -> ImportedProperty {
    let json = try Announcement(topic: "", text: fields).json()
    var property = ImportedProperty("p", type: "text")
    for member in json.members ?? [] { property[member.name] = member.value }
    return property
  }

  /// The fields of a property, as JSON, after the template of its state; `nil` if it has none.
  private static func state(_ fields: String, _ template: String) throws -> String? {
    var property = try property(fields)
    let meaning = StateMeaning(property)
    guard let template = try? Template(template),
      let path = property.path(of: ReportTemplate(template), meaning)
    else { return nil }
    property.setState(on: "t", at: PlaceholderText.pointer(path.map { $0.scalarText ?? "" }))
    return JSONWriter.text(.object(property.fields.filter { $0.name != "command" }))
  }

  /// What is published for values, after the template of its commands; `nil` if it has none.
  private static func command(_ fields: String, _ template: String) throws -> String? {
    var property = try property(fields)
    guard let template = try? Template(template),
      let payload = property.payload(
        of: CommandTemplate(template: template) { ["value": $0, "position": $0] }
      )
    else { return nil }
    let gateway = property.gatewayProperty
    let values = ["40", "true", "false", "low", "high", "abc"].compactMap { text in
      try? gateway.kind.value(from: .string(text))
    }
    return values.map { value in
      var bytes: [UInt8] = []
      PayloadTemplate(payload).render(gateway.wireValue(of: value), into: &bytes)
      return String(decoding: bytes, as: UTF8.self)
    }.joined(separator: " ")
  }

  @Test(arguments: [
    ("{{ value }}", ""),
    ("{{value_json.POWER1}}", "/POWER1"),
    ("{{ value_json['a b'].c }}", "/a b/c"),
    ("{{ value_json.list[2] }}", "/list/2"),
    ("{{ value_json.get('x', 'none') }}", "/x"),
    ("{{- value_json.x | default('off') -}}", "/x"),
    ("{% set x = value_json.x %}{{ x.y }}", "/x/y"),
    ("{{ (value | from_json).x }}", "/x"),
    // EMS-ESP, and zwave-js-ui.
    ("{{value_json.boiler.temp if value_json.boiler.temp is defined else 0}}", "/boiler/temp"),
    ("{{value_json['a b']|is_defined}}", "/a b"),
    ("{{value_json['a'] if value_json['a'] is defined else false}}", "/a"),
    (
      "{{value_json['hc1']['t'] if value_json.hc1 is defined and value_json['hc1']['t'] is defined else 5}}",
      "/hc1/t"
    ),
  ])
  func `a value is picked`(template: String, pointer: String) throws {
    let at = pointer.isEmpty ? "" : #","value":"\#(pointer)""#
    #expect(
      try Self.state(#"{"type":"text"}"#, template)
        == #"{"type":"text","state":{"topic":"t"\#(at)}}"#
    )
  }

  @Test(arguments: [
    ("{{ value_json.x | float(0) | round(1) }}", ""),
    ("{{ value_json.v * 2 + 1 }}", #""scale":{"from":[1,201],"to":[0,100],"decimals":3},"#),
    ("{{ (value_json.v - 32) / 2 }}", #""scale":{"from":[-16,34],"to":[0,100],"decimals":3},"#),
    ("{{ 100 - (value | int) }}", #""scale":{"from":[100,0],"to":[0,100],"decimals":3},"#),
    (
      "{{ (value_json['a'] if value_json['a'] is defined else 0) / 2 }}",
      #""scale":{"from":[0,50],"to":[0,100],"decimals":3},"#
    ),
    // OpenBeken.
    (
      "{{ '%0.2f'|format(float(value)*0.1) }}",
      #""scale":{"from":[0,10],"to":[0,100],"decimals":3},"#
    ),
    (
      "{{ value_json.gain | float | multiply(2.5) }}",
      #""scale":{"from":[0,250],"to":[0,100],"decimals":3},"#
    ),
    (
      "{{ (value | float / (3600*1000)) | round(3) }}",
      #""scale":{"from":[0,1],"to":[0,3600000],"decimals":9},"#
    ),
    ("{{ value | float if is_number(value) else none }}", ""),
    ("{{ none if value == '---' else value }}", ""),
    // A number in a text, and reports that stand for one or none.
    ("{{ value | replace('%', '') | float(0) }}", #""decode":"%g","#),
    ("{{ value_json.heap.split(' ')[0] }}", #""decode":"%g","#),
    ("{{ value | int(base=16) }}", #""decode":"%X","#),
    ("{{ none if value_json.x == -1 else value_json.x }}", #""decode":{"none":-1},"#),
    (
      "{{ none if value | int == -1 else (value | int / 60) | round }}",
      #""scale":{"from":[0,1],"to":[0,60],"decimals":9},"decode":{"none":-1},"#
    ),
    (
      "{% if value == 'summer' %}9{% elif value == 'winter' %}31{% else %}{{ value.split(' ')[0] }}{% endif %}",
      #""decode":{"31":"winter","9":"summer","else":"%g"},"#
    ),
  ])
  func `a reading is scaled`(template: String, scale: String) throws {
    let state = try Self.state(#"{"type":"number"}"#, template) ?? ""
    #expect(state.hasPrefix(#"{"type":"number",\#(scale)"state""#), "\(state)")
  }

  private static let power = #"{"type":"boolean","on":"ON","off":"OFF","command":{}}"#
  private static let mode = #"{"type":"choice","values":["low","high"],"command":{}}"#

  @Test(
    arguments: [
      (power, "{{ 'ON' if value_json.value == 'on' else 'OFF' }}", nil),
      (power, "{{ 'OFF' if value_json.v == false else 'ON' }}", nil),
      (power, "{{ 'ON' if value_json.v else 'OFF' }}", nil),
      (power, "{%if value_json.on%}ON{%else%}OFF{%endif%}", nil),
      (power, "{{ iif(value_json.v == 1, 'ON', 'OFF') }}", nil),
      // An inverted report.
      (power, "{{ 'ON' if value_json.v == 'off' else 'OFF' }}", #"{"on":"off","off":"on"}"#),
      (power, "{{ 'ON' if value in ['1', '2'] else 'OFF' if value == '0' }}", #"{"on":"2"}"#),
      (power, "{{ 'ON' if value in ['2', '3'] else 'OFF' if value == '0' }}", #"{"on":["2","3"]}"#),
      // Any other report.
      (power, "{{ 'ON' if value_json.v == 'open' else 'OFF' }}", #"{"on":"open","else":"off"}"#),
      (power, "{{ 'OFF' if value_json.v == 0 else 'ON' }}", #"{"off":0,"else":"on"}"#),
      (
        power, "{{ 'ON' if value_json.v | int > 0 else 'OFF' }}",
        #"{"on":{"above":0},"else":"off"}"#
      ),
      (
        power, "{{ 'ON' if value_json.v | int > 7 else 'OFF' }}",
        #"{"on":{"above":7},"else":"off"}"#
      ),
      (
        mode, "{% if value | int >= 50 %}high{% else %}low{% endif %}",
        #"{"high":{"from":50},"else":"low"}"#
      ),
      (power, "{{ 'ON' if value_json.v % 2 == 1 else 'OFF' }}", ""),
      (mode, "{% if value == '0' %}low{% else %}high{% endif %}", #"{"low":"0","else":"high"}"#),
      // Words that nothing has.
      (power, "{{ 'yes' if value_json.v == 'on' else 'no' }}", ""),
      (power, "{{ value.split(',')[0] }}", ""),
      (power, "{{ 'ON' if value_json.a == 1 or value_json.b == 1 else 'OFF' }}", ""),
      (mode, "{{ {0:'low', 1:'high'}[value_json.v] | default('low') }}", #"{"low":0,"high":1}"#),
      (
        mode,
        #"{{ {1:'high', 0:'low'}[(value | int(99999))] | default("Undefined ["~value~"]") }}"#,
        #"{"low":0,"high":1}"#
      ),
      (mode, "{{ ['low', 'high'][value | int] }}", #"{"low":0,"high":1}"#),
      (mode, "{% set m = ['low', 'high'] %}{{ m[value_json.m] }}", #"{"low":0,"high":1}"#),
      (
        mode, "{% if value == 'a' or value == 'b' %}low{% elif value == 'c' %}high{% endif %}",
        #"{"low":["a","b"],"high":"c"}"#
      ),
      (mode, "{{ value_json.mode | lower }}", nil),
      (
        #"{"type":"choice","values":["fanauto","fanon"],"command":{}}"#,
        #"{{ "fan" + value_json.Fan | lower }}"#, #"{"fanauto":"auto","fanon":"on"}"#
      ),
      (
        #"{"type":"boolean","on":"{\"v\":true}","off":"{\"v\":false}","command":{}}"#,
        #"{"v":{{ value | lower }}}"#, nil
      ),
      (mode, "{% if 10 < value | int < 50 %}high{% else %}low{% endif %}", ""),
      (mode, "{% if value == 0 %}low{% else %}high{% endif %}", ""),
      // Zero is false too.
      (
        #"{"type":"text"}"#, "{% if value_json.White %}white{% else %}rgb{% endif %}",
        #"{"rgb":[false,0],"else":"white"}"#
      ),
    ] as [(String, String, String?)]
  )
  func `words are looked up`(property: String, template: String, decode: String?) throws {
    let state = try Self.state(property, template)
    let found = try state.flatMap { try Announcement(topic: "", text: $0).json()["decode"] }
    #expect(
      state == nil ? decode == "" : found.map { JSONWriter.text($0) } == decode,
      "\(state ?? "")"
    )
  }

  @Test(arguments: [
    "{{ value_json.a if value_json.a else value_json.b }}", "{% if value %}1{% endif %}",
    "{{ value_json.Color.split(',')[1] }}", "{{ states('sensor.x') }}",
    "{{ value | regex_replace('a', 'b') }}", "{{ value_json.a if value_json.b is defined else 0 }}",
    "{{ value_json.a if value_json.a is undefined else 0 }}", "{{ 'a' if value = 1 else 'b' }}",
    "{{ 'a' if value_json == 1 }}", "{{ now() }}", "{{ as_timestamp(value) }}",
    "{{ value }} {{ value }}", "plain", "{{ value_json.a * value_json.b }}", "{{ value / 0 }}",
    "{% if value > 3 %}a{% else %}b{% endif %}", "{% if value == 1 %}a", "{% if value == 1 %}",
    "{% for a in b %}c{% endfor %}", "{{ value_json.a ** 2 }}", "{{ value_json | length }}",
    "{% if value_json.a == 1 %}a{% elif value_json.b == 2 %}b{% else %}c{% endif %}", "{% else %}",
    "{% if a %}{% else %}{% else %}{% endif %}", "{{ 'a' if value_json.x is defined else 'b' }}",
    "{# a #}", "{{ '%s and'|format(value) }}", "{{ }}", "{{", "{{ value", "{{ 'a }}", "{% raw %}",
    "{{ [value_json.x, 100] | min }}", "{{ 5 if value_json.x < 5 else value_json.x }}",
    "{{ ((((((((((((((((((((((((value)))))))))))))))))))))))) }}",
  ])
  func `templates that a device file cannot express are refused`(template: String) throws {
    #expect(try Self.state(#"{"type":"number"}"#, template) == nil)
    #expect(try Self.state(#"{"type":"text"}"#, template) == nil)
  }

  private static let level = #"{"type":"integer","range":[0,100],"step":1}"#
  private static let half = #"{"type":"number","range":[12,40],"step":0.5}"#
  private static let speed = #"{"type":"integer","range":[38,41],"step":1}"#

  @Test(arguments: [
    (level, #"{"t": {{ value }}}"#, #"{"t":40}"#),
    (level, #"{"t": "{{ value }}", "n": 1}"#, #"{"t":"40","n":1}"#),
    (level, #"{"t":{{value*1000}},"save":true}"#, #"{"t":40000,"save":true}"#),
    (level, "{{ position / 100 * 99 }}", "39.6"),
    (level, "{{ (value * 2.55) | int }}", "102"),
    (level, "{{ (value * 10) | int }}", "400"),
    (level, "{{ value / 10 }}", "4"),
    (level, #"[{"uid":5120,"value":{{value}}}]"#, #"[{"uid":5120,"value":40}]"#),
    (
      level, #"{{ {"id": 1, "params": {"value": value}} | tojson }}"#,
      #"{"id":1,"params":{"value":40}}"#
    ),
    (#"{"type":"number","range":[2000,6500],"unit":"K"}"#, "{{ (1000000 / value) | round }}", ""),
    // A number in a text.
    (level, "{{ value }}%", "40%"), (level, "TT={{ value }}", "TT=40"),
    (level, "{{ '%02x' | format(value) }}", "28"),
    (level, "{{ 'E39007E09%02X' | format(value | int) }}", "E39007E0928"),
    (half, "{{ 'E3A0047%02X' | format((32 + value * 2) | int) }}", "E3A004770"),
    (half, "{{ 'E360003%04X' | format((value * 10) | int) }}", "E3600030190"),
    (half, "TEMP {{ '%.1f' | format(value) }}", "TEMP 40.0"),
    (level, "{CMD:12,VALUE:{{ value | int }},X:0}", "{CMD:12,VALUE:40,X:0}"),
    (level, #"{"cmd": "dim {{ value }} 5", "n": 1}"#, #"{"cmd":"dim 40 5","n":1}"#),
    (speed, "{{ {38: 0, 39: 16, 40: 32, 41: 'max'}[value] }}", "32"),
    (power, "{{ 1 if value == 'ON' else 0 }}", "1 0"),
    (power, #"{"on": {{ (value == 'ON') | tojson }}}"#, #"{"on":true} {"on":false}"#),
    (power, "{% if value == 'ON' %}start 5{% else %}stop{% endif %}", "start 5 stop"),
    (mode, "{{ ['low', 'high'].index(value) }}", "0 1"),
    (mode, "{{ {'low': 16, 'high': 80}[value] }}", "16 80"),
    (mode, #"{"cmd": "{{ value | upper }}"}"#, #"{"cmd":"LOW"} {"cmd":"HIGH"}"#),
    (mode, "{% set v = {'low':1,'high':3} %}{{ 'Z%02X' | format(v[value]) }}", "Z01 Z03"),
    (
      #"{"type":"text"}"#, #"{"text": {{ value | to_json }}}"#,
      #"{"text":"40"} {"text":"true"} {"text":"false"} {"text":"low"} {"text":"high"} {"text":"abc"}"#
    ),
  ])
  func `a command has the form that the template gives it`(
    property: String,
    template: String,
    sent: String
  ) throws {
    #expect(try Self.command(property, template) == sent)
  }

  @Test(arguments: [
    (level, "{{ value ** 2 }}"), (level, "{% if value > 50 %}high{% else %}low{% endif %}"),
    (level, "{{ states('x') }}"), (level, "{{ value }} {{ value }}"),
    (level, #"{"a": {{ value }}, "b": {{ value + 1 }}}"#),
    (level, "{{ value | float - random(3) }}"), (mode, "{{ states('x') }}"), (power, "1"),
    (power, "{{ '' }}"), (#"{"type":"text"}"#, "{{ value | upper }}"),
  ])
  func `a command that a device file cannot express is refused`(property: String, template: String)
    throws
  {
    #expect(try Self.command(property, template) == nil)
  }

  @Test(arguments: [
    ("{{ value_json.a.b + 1 }}", #"{"a":{"b":2}}"#, "3"),
    ("{{ value_json.a / 2 }}", #"{"a":4}"#, "2.0"),
    ("{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 3 }} {{ 7 % 3 }}", "", "3 -4 2 8 1"),
    (
      "{{ 2.5 | round }} {{ 3.5 | round }} {{ 2.675 | round(2) }} {{ 1.1 | round(0, 'ceil') }}", "",
      "2 4 2.67 2"
    ),
    (
      "{{ '12.7' | int }} {{ 'x' | int(5) }} {{ 'ff' | int(0, 16) }} {{ '0x1f' | int(base=16) }}",
      "", "12 5 255 31"
    ),
    ("{{ '3' | float }} {{ 'x' | float(1.5) }} {{ 'x' | float('n/a') }}", "", "3.0 1.5 n/a"),
    (
      "{{ true }} {{ none }} {{ [1, 'a'] }} {{ {'a': 1.0} }} {{ missing }}.", "",
      "True None [1, 'a'] {'a': 1.0} ."
    ),
    ("{{ 'a' if 1 < 2 < 3 else 'b' }}{{ 'c' if not 1 in [2] }}", "", "ac"),
    ("{{ value.split(',')[-1] | trim | upper }}", "a, b", "B"),
    ("{{ value[0:2] }}{{ value[-1] }}{{ value[:-2] }}", "abcd", "abdab"),
    ("{{ '%05.1f|%02X|%s|%d%%' | format(3.14159, 255, 'x', 7.9) }}", "", "003.1|FF|x|7%"),
    ("{{ '{:02x}-{}-{0}'.format(10, 'a') if false else '{0}-{1}'.format(1, 2) }}", "", "1-2"),
    ("{% for x in [1, 2, 3] %}{{ x }}{% endfor %}", "", "123"),
    (
      "{% set ns = namespace(x=0) %}{% for i in range(4) %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
      "", "6"
    ),
    (" a {%- if true -%} b {%- endif %} c", "", "ab c"),
    (
      "{{ value | is_number }} {{ 'x' is string }} {{ 3 is number }} {{ none is none }} {{ 'a' is in ['a'] }}",
      "1", "True True True True True"
    ),
    (
      "{{ iif(0, 'a', 'b') }}{{ 1 | iif('c') }}{{ max(1, 5, 3) }}{{ [4, 2] | min }}{{ -3 | abs }}",
      "", "bc523"
    ),
    ("{{ {'a': [1, 2]} | to_json }}{{ 'x' ~ 1 ~ none }}", "", #"{"a":[1,2]}x1None"#),
    (
      "{{ 'Hello World'.title() }} {{ 'a_b' | replace('_', ' ') | capitalize }} {{ 'ab'.find('b') }}",
      "", "Hello World A b 1"
    ),
    (
      "{{ value_json.x | default('d') }} {{ '' | default('e', true) }} {{ value_json.x is defined }}",
      "{}", "d e False"
    ),
    (
      "{{ 5 | bitwise_and(4) }} {{ 'on' | bool }} {{ 'b' in value_json }} {{ ('a', 'b')[1] }}",
      #"{"b":1}"#, "4 True True b"
    ),
  ])
  func `templates are evaluated as Jinja does`(template: String, payload: String, result: String)
    throws
  {
    let context = TemplateContext()
    context.report = (payload, try? Announcement(topic: "", text: payload).json())
    #expect(try Template(template).rendered(context) == result)
  }

  @Test(arguments: [
    String(repeating: "{% if a %}", count: 200) + String(repeating: "{% endif %}", count: 200),
    "{{ " + String(repeating: "not ", count: 2000) + "a }}",
    "{{ " + String(repeating: "-", count: 4000) + "1 }}",
    "{{ " + Array(repeating: "1", count: 3000).joined(separator: "+") + " }}",
    "{{ " + Array(repeating: "1", count: 3000).joined(separator: "==") + " }}",
    "{{ a" + String(repeating: ".b", count: 3000) + " }}",
    "{{ a" + String(repeating: "|d", count: 3000) + " }}",
    "{{ " + String(repeating: "[", count: 3000) + String(repeating: "]", count: 3000) + " }}",
    "{{ " + String(repeating: "1 if 1 else ", count: 500) + "1 }}",
    String(repeating: "x", count: 9000),
    "{% set x = 'xxxxxxxxxx' %}" + String(repeating: "{% set x = x ~ x %}", count: 30) + "{{ x }}",
    "{% for a in range(1000) %}{% for b in range(1000) %}{{ a * b }}{% endfor %}{% endfor %}",
    "{{ '%0999999999d' | format(1) }}", "{{ 9 ** 9 ** 9 }}", "{{ 9223372036854775807 + 1 }}",
    "{{ value.replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa') }}",
    "{{ (-9223372036854775807 - 1) // -1 }}", "{{ -9223372036854775808 | abs }}",
    "{{ 1 | round(400) }}",
    "{{ 1e999 | int }}", "{{ (10 ** 400) | int }}", "{{ 'a'[99999999999999999999] }}",
    "{{ [1][9223372036854775807] }}",
    "{{ value_json[9223372036854775807] }}", "{{ value_json.a[-9223372036854775807] }}",
    "{{ '' | ord }}",
  ])
  func `a hostile template ends`(template: String) throws {
    guard let parsed = try? Template(template) else { return }
    _ = parsed.rendered(["value": .text("aaaaaaaaaa")])
    var property = ImportedProperty("p", type: "number")
    _ = property.path(of: ReportTemplate(parsed), StateMeaning(property))
  }
}
