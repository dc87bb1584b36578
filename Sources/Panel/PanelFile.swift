// Settle
// SPDX-License-Identifier: Apache-2.0

/// One file of the panel, embedded in the binary.
package struct PanelFile: Sendable {
  package let bytes: [UInt8]
  package let mediaType: String
  /// The value of the header `ETag`, with quotes.
  package let tag: String

  private init(_ bytes: [UInt8], _ mediaType: String) {
    self.bytes = bytes
    self.mediaType = mediaType
    tag = Self.tag(of: bytes)
  }

  /// The page itself.
  package static let page = PanelFile(PackageResources.index_html, "text/html; charset=utf-8")

  /// The file called `name`; `nil` if there is none.
  package static func named(_ name: String) -> PanelFile? { files[name] }

  private static let style = "text/css; charset=utf-8"
  private static let script = "text/javascript; charset=utf-8"

  private static let files = [
    "icon.svg": PanelFile(PackageResources.icon_svg, "image/svg+xml"),
    "controls.css": PanelFile(PackageResources.controls_css, style),
    "panel.css": PanelFile(PackageResources.panel_css, style),
    "cards.js": PanelFile(PackageResources.cards_js, script),
    "color-control.js": PanelFile(PackageResources.color_control_js, script),
    "colors.js": PanelFile(PackageResources.colors_js, script),
    "controls.js": PanelFile(PackageResources.controls_js, script),
    "dom.js": PanelFile(PackageResources.dom_js, script),
    "house.js": PanelFile(PackageResources.house_js, script),
    "key.js": PanelFile(PackageResources.key_js, script),
    "link.js": PanelFile(PackageResources.link_js, script),
    "mark.js": PanelFile(PackageResources.mark_js, script),
    "number-control.js": PanelFile(PackageResources.number_control_js, script),
    "outbox.js": PanelFile(PackageResources.outbox_js, script),
    "panel.js": PanelFile(PackageResources.panel_js, script),
    "pointer.js": PanelFile(PackageResources.pointer_js, script),
    "problem.js": PanelFile(PackageResources.problem_js, script),
    "storage.js": PanelFile(PackageResources.storage_js, script),
    "stream.js": PanelFile(PackageResources.stream_js, script),
    "timeline.js": PanelFile(PackageResources.timeline_js, script),
    "values.js": PanelFile(PackageResources.values_js, script),
    "words.js": PanelFile(PackageResources.words_js, script),
  ]

  /// The content security policy of the page: only resources of its own origin, nothing inline.
  package static let contentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    + "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  /// A 64-bit FNV-1a hash, which distinguishes versions of a file but is not secure.
  private static func tag(of bytes: [UInt8]) -> String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return "\"\(String(hash, radix: 16))\""
  }
}
