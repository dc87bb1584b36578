// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
@testable import Import
import Testing

/// Identifiers from names.
struct NamingTests {
  @Test(arguments: [
    ("Desk lamp", "desk-lamp"), ("Küche/Decke links", "kueche-decke-links"),
    ("STRASSE Süß", "strasse-suess"), ("Ångström Øst Ærø", "angstroem-oest-aeroe"),
    ("čeština žluť", "cestina-zlut"), ("Łódź", "lodz"), ("Лампа в зале", "lampa-v-zale"),
    ("Φως", "fos"), ("Nr. 2 – Fenster - links", "nr-2-fenster-links"), ("Å", "a"),
    ("e\u{301}te\u{301}", "ete"),
    ("0x00158d00018255df", "0x00158d00018255df"), ("../../etc/passwd", "etc-passwd"),
    ("a\u{0}b\u{1B}[31m", "a-b-31m"), ("  --  ", ""), ("客厅", ""), ("status", "status-device"),
    ("\u{202E}evil", "evil"),
    (String(repeating: "ab", count: 60), String(repeating: "ab", count: 30)),
  ])
  func `a name becomes an identifier`(name: String, id: String) {
    #expect(DeviceSlug.slug(name) == id)
    #expect(id.isEmpty || Identifiers.problem(inDevice: id) == nil)
  }

  @Test func `identifiers that collide are numbered, and stay with their devices`() {
    let lamps = ["0x1", "0x2", "0x3"].map {
      ImportedDevice(identity: $0, name: "Lamp", comment: "")
    }
    var first = DeviceNumbering(known: [:], taken: ["lamp"])
    #expect(lamps.map { first.id(for: $0) } == ["lamp-2", "lamp-3", "lamp-4"])
    var second = DeviceNumbering(known: ["0x3": "lamp-2"], taken: [])
    #expect(lamps.map { second.id(for: $0) } == ["lamp", "lamp-3", "lamp-2"])
  }

  @Test func `a name without letters falls back to the address`() {
    var numbering = DeviceNumbering(known: [:], taken: [])
    let lamp = ImportedDevice(identity: "0x00AB", name: "客厅", comment: "")
    #expect(numbering.id(for: lamp) == "0x00ab")
  }

  @Test(arguments: [
    ("set", "set_value"), ("Max Level", "Max_Level"), ("größe", "groesse"), ("", "value"),
    ("__", "value"), ("info", "info_value"),
  ])
  func `properties get valid identifiers`(name: String, id: String) {
    var names = PropertyNames()
    #expect(names.unique(name) == id)
    #expect(names.unique(name) == "\(id)_2")
    #expect(Identifiers.problem(inProperty: id) == nil)
  }
}
