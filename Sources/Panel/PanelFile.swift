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

  /// Whether compressing it helps.
  package var isText: Bool { mediaType != "image/png" }

  /// The page itself, which asks for all scripts at once.
  ///
  /// It names scripts and styles with ``version``, so that a browser keeps them without asking. Its
  /// tag covers all files, so that a page can see that the gateway has newer ones.
  package static let page = {
    var html = String(decoding: PackageResources.index_html, as: UTF8.self)
    let links = files.keys.sorted().filter { $0.hasSuffix(".js") }.map {
      "<link rel=\"modulepreload\" href=\"panel/\($0)\">\n"
    }
    html.replace("<script", with: links.joined() + "<script", maxReplacements: 1)
    for name in files.keys where name.hasSuffix(".js") || name.hasSuffix(".css") {
      html.replace("\"panel/\(name)\"", with: "\"panel/\(version)/\(name)\"")
    }
    return PanelFile(Array(html.utf8), "text/html; charset=utf-8")
  }()

  /// Changes with any of the files.
  package static let version = {
    let tags = files.keys.sorted().flatMap { Array((files[$0]?.tag ?? "").utf8) }
    return String(tag(of: tags).dropFirst().dropLast())
  }()

  /// The file called `name`; `nil` if there is none.
  package static func named(_ name: String) -> PanelFile? { files[name] }

  private static let style = "text/css; charset=utf-8"
  private static let script = "text/javascript; charset=utf-8"

  private static let files = [
    "arrange.js": PanelFile(PackageResources.arrange_js, script),
    "bar.js": PanelFile(PackageResources.bar_js, script),
    "controls.css": PanelFile(PackageResources.controls_css, style),
    "controls.js": PanelFile(PackageResources.controls_js, script),
    "dom.js": PanelFile(PackageResources.dom_js, script),
    "house.js": PanelFile(PackageResources.house_js, script),
    "icon-192.png": PanelFile(PackageResources.icon_192_png, "image/png"),
    "icon-512.png": PanelFile(PackageResources.icon_512_png, "image/png"),
    "icon.svg": PanelFile(PackageResources.icon_svg, "image/svg+xml"),
    "link.js": PanelFile(PackageResources.link_js, script),
    "log.js": PanelFile(PackageResources.log_js, script),
    "mark.js": PanelFile(PackageResources.mark_js, script),
    "outbox.js": PanelFile(PackageResources.outbox_js, script),
    "page.js": PanelFile(PackageResources.page_js, script),
    "panel.css": PanelFile(PackageResources.panel_css, style),
    "panel.js": PanelFile(PackageResources.panel_js, script),
    "panel.webmanifest": PanelFile(PackageResources.panel_webmanifest, "application/manifest+json"),
    "reports.js": PanelFile(PackageResources.reports_js, script),
    "settings.js": PanelFile(PackageResources.settings_js, script),
    "sheet.css": PanelFile(PackageResources.sheet_css, style),
    "sheet.js": PanelFile(PackageResources.sheet_js, script),
    "tiles.css": PanelFile(PackageResources.tiles_css, style),
    "tiles.js": PanelFile(PackageResources.tiles_js, script),
    "values.js": PanelFile(PackageResources.values_js, script),
    "wall.css": PanelFile(PackageResources.wall_css, style),
    "wall.js": PanelFile(PackageResources.wall_js, script),
    "words.js": PanelFile(PackageResources.words_js, script),
  ]

  /// The content security policy of the page: only resources of its own origin, nothing inline.
  ///
  /// `isProxied`: it comes through a trusted proxy, which may show it in a page of its own.
  package static func contentSecurityPolicy(isProxied: Bool) -> String {
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
      + "img-src 'self' data:; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
      + "frame-ancestors \(isProxied ? "'self'" : "'none'")"
  }

  /// A 64-bit FNV-1a hash, which distinguishes versions of a file but is not secure.
  private static func tag(of bytes: [UInt8]) -> String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return "\"\(String(hash, radix: 16))\""
  }
}
