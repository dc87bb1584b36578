// swift-tools-version: 6.2
// Settle
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

/// Debian's valgrind does not read the newer format of debug information, which is clang's choice.
let readableByValgrind: [CSetting] = [.unsafeFlags(["-gdwarf-4"])]

let package = Package(
  name: "settle",
  // Of the platforms of Apple, those whose standard library has spans of strings.
  platforms: [.macOS(.v26), .iOS(.v26), .tvOS(.v26), .watchOS(.v26), .visionOS(.v26)],
  products: [
    .library(name: "LastOut", targets: ["LastOut"]),
    .library(name: "LastOutTesting", targets: ["LastOutTesting"]),
    .executable(name: "settle", targets: ["settle"]),
    .executable(name: "settled", targets: ["settled"]),
  ],
  targets: [
    // The last-out queue: no dependency, no C library, no unsafe flag, so that others can use it.
    .target(name: "LastOut"),
    .target(name: "LastOutTesting", dependencies: ["LastOut"]),

    // What is decided, without clock, lock or I/O.
    .target(
      name: "Devices",
      dependencies: ["LastOut"],
      linkerSettings: [.linkedLibrary("m")]
    ),
    .target(name: "Commands", dependencies: ["Devices", "LastOut"]),

    // Shared ground: JSON text, command lines, the event loop, the log.
    .systemLibrary(name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
    .target(name: "JSON", dependencies: ["CJansson", "Devices"]),
    .target(name: "Arguments", dependencies: ["Devices"]),
    .systemLibrary(name: "CUV", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
    .target(name: "Operations", dependencies: ["CUV", "LastOut"]),

    // The ways in and out.
    .target(name: "Control", dependencies: ["Devices", "JSON", "LastOut"]),
    .systemLibrary(
      name: "CMosquitto",
      pkgConfig: "libmosquitto",
      providers: [.apt(["libmosquitto-dev"])]
    ),
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    // Few system calls instead of many, below libmosquitto.
    .target(name: "CSocketBuffer", cSettings: readableByValgrind),
    .target(
      name: "MQTT",
      dependencies: ["CMosquitto", "COpenSSL", "CSocketBuffer", "Operations", "LastOut"]
    ),
    .systemLibrary(name: "CFYAML", pkgConfig: "libfyaml", providers: [.apt(["libfyaml-dev"])]),
    .target(
      name: "Configuration",
      dependencies: ["CFYAML", "Devices", "LastOut"],
      resources: [.embedInCode("Resources")]
    ),
    // What survives a crash.
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .target(name: "Journal", dependencies: ["CSQLite", "LastOut"]),
    // Loaded when HTTP is asked for; not linked, so no pkgConfig.
    .target(
      name: "CMicroHTTPD",
      cSettings: readableByValgrind,
      linkerSettings: [.linkedLibrary("dl")]
    ),
    .target(
      name: "HTTP",
      dependencies: ["CMicroHTTPD", "Devices", "LastOut", "Operations"],
      resources: [.embedInCode("Resources")]
    ),
    // What other programs are told about devices.
    .target(name: "HomeAssistant", dependencies: ["Configuration", "Devices"]),
    // The page that people touch: HTML, styles and scripts inside the binary.
    .target(name: "Panel", resources: [.embedInCode("Resources")]),
    .target(
      name: "Gateway",
      dependencies: [
        "Commands", "Configuration", "Control", "Devices", "HTTP", "HomeAssistant", "JSON",
        "Journal", "LastOut", "MQTT", "Operations", "Panel",
      ]
    ),
    .target(
      name: "Simulation",
      dependencies: [
        "Configuration", "Control", "Devices", "Gateway", "JSON", "LastOut", "MQTT", "Operations",
        "PrivateBroker",
      ]
    ),
    .target(name: "PrivateBroker", dependencies: ["Operations"]),
    // Device files from what is announced at a broker.
    .target(
      name: "Import",
      dependencies: ["Configuration", "Devices", "JSON", "LastOut", "MQTT", "Operations"]
    ),

    // One gateway's life among faults, on virtual time: for tests and `make soak`.
    .target(name: "FaultSimulation", dependencies: ["Commands", "Devices", "Journal", "LastOut"]),
    .executableTarget(name: "soak", dependencies: ["FaultSimulation"]),

    // The full-screen stepper as values; only the program draws.
    .target(name: "Screen", dependencies: ["Control", "Devices", "LastOut"]),
    // No pkgConfig: SwiftPM warns about its feature macros; the module map names the libraries.
    .systemLibrary(name: "CNcurses", providers: [.apt(["libncurses-dev"])]),

    // Less to do before `settle` begins.
    .target(
      name: "CStart",
      cSettings: [.define("SETTLE_STATIC", .when(platforms: [.linux], configuration: .release))]
    ),

    // The two programs.
    .executableTarget(
      name: "settle",
      dependencies: [
        "Arguments", "CNcurses", "CStart", "Control", "Devices", "JSON", "LastOut", "Screen",
      ],
      exclude: ["order.txt"],
      // It is started for every tap: no dynamic linker, no symbols, and what a start touches is put
      // together. lld, because gold warns about a dlopen in the Swift runtime that is never reached.
      linkerSettings: [
        .unsafeFlags(
          [
            "-static-executable", "-use-ld=lld", "-Xlinker", "--strip-all",
            "-Xlinker",
            "--symbol-ordering-file=\(Context.packageDirectory)/Sources/settle/order.txt",
            "-Xlinker", "--no-warn-symbol-ordering",
          ],
          .when(platforms: [.linux], configuration: .release)
        )
      ]
    ),
    .executableTarget(
      name: "settled",
      dependencies: [
        "Arguments", "Configuration", "Control", "Devices", "Gateway", "Import", "JSON", "Journal",
        "LastOut", "MQTT", "Operations", "Simulation",
      ],
      exclude: ["Libraries", "order.txt"],
      // It stays in memory for months: no symbols for others, short relocations, of the C++ library
      // only what the Swift runtime uses, and what each change passes side by side.
      linkerSettings: [
        .unsafeFlags(
          [
            "-use-ld=lld", "-L\(Context.packageDirectory)/Sources/settled/Libraries",
            "-Xlinker", "--no-export-dynamic",
            "-Xlinker", "-z", "-Xlinker", "pack-relative-relocs",
            "-Xlinker",
            "--symbol-ordering-file=\(Context.packageDirectory)/Sources/settled/order.txt",
            "-Xlinker", "--no-warn-symbol-ordering",
          ],
          .when(platforms: [.linux], configuration: .release)
        )
      ]
    ),

    .testTarget(
      name: "LastOutTests",
      dependencies: ["LastOut", "LastOutTesting"],
      resources: [.copy("Fixtures")]
    ),
    // Eight threads at everything the library has, for sanitizers: see .ci/stress.
    .executableTarget(
      name: "lastout-stress",
      dependencies: ["LastOut", "LastOutTesting"],
      path: "Tests/LastOutStress"
    ),
    .testTarget(name: "DevicesTests", dependencies: ["Devices", "LastOut"]),
    .testTarget(
      name: "ConfigurationTests",
      dependencies: ["Configuration", "Devices", "LastOut"],
      exclude: ["Fixtures"]
    ),
    .testTarget(
      name: "CommandsTests",
      dependencies: ["Commands", "Devices", "LastOut", "LastOutTesting"]
    ),
    .testTarget(name: "ControlTests", dependencies: ["Control", "Devices", "JSON", "LastOut"]),
    .testTarget(
      name: "ScreenTests",
      dependencies: ["Control", "Devices", "LastOut", "Screen"]
    ),
    .testTarget(
      name: "FaultSimulationTests",
      dependencies: ["Commands", "FaultSimulation", "LastOut"]
    ),
    .testTarget(
      name: "HTTPTests",
      dependencies: ["Devices", "HTTP", "JSON", "LastOut", "Operations", "PrivateBroker"]
    ),
    .testTarget(
      name: "HomeAssistantTests",
      dependencies: ["Configuration", "Devices", "HomeAssistant"]
    ),
    .testTarget(name: "JSONTests", dependencies: ["Devices", "JSON"]),
    .testTarget(name: "ArgumentsTests", dependencies: ["Arguments"]),
    .testTarget(name: "OperationsTests", dependencies: ["LastOut", "Operations", "TestBroker"]),
    .testTarget(
      name: "MQTTTests",
      dependencies: [
        "CSocketBuffer", "LastOut", "MQTT", "Operations", "PrivateBroker", "TestBroker",
      ]
    ),
    .testTarget(
      name: "JournalTests",
      dependencies: [
        "CSQLite", "FaultySync", "Journal", "JournalWorker", "LastOut", "LastOutTesting",
      ]
    ),
    .executableTarget(
      name: "JournalWorker",
      dependencies: ["Journal", "LastOut", "Operations"],
      path: "Tests/JournalWorker"
    ),
    .target(name: "FaultySync", dependencies: ["CSQLite"], path: "Tests/FaultySync"),
    .testTarget(
      name: "GatewayTests",
      dependencies: [
        "Commands", "Configuration", "Control", "Devices", "Gateway", "JSON", "Journal", "LastOut",
        "LastOutTesting", "Operations", "PrivateBroker", "Simulation", "TestBroker",
      ]
    ),
    .testTarget(
      name: "SimulationTests",
      dependencies: [
        "Configuration", "Control", "Devices", "JSON", "LastOut", "Operations", "PrivateBroker",
        "Simulation", "TestBroker",
      ]
    ),
    .testTarget(
      name: "ImportTests",
      dependencies: [
        "Configuration", "Devices", "Import", "JSON", "LastOut", "LastOutTesting", "Operations",
        "PrivateBroker", "TestBroker",
      ],
      exclude: ["Fixtures"]
    ),
    .target(
      name: "TestBroker",
      dependencies: ["CMosquitto", "LastOut", "Operations", "PrivateBroker"],
      path: "Tests/TestBroker"
    ),
  ],
  swiftLanguageModes: [.v6]
)

// The benchmarks' Swift side, for `make bench` alone: nobody else waits for it.
if Context.environment["SETTLE_BENCHMARKS"] != nil {
  package.targets.append(
    .executableTarget(
      name: "bench",
      dependencies: ["Commands", "Devices", "LastOut", "Operations"],
      path: "Benchmarks/Swift"
    )
  )
}

for target in package.targets where target.type != .system {
  target.swiftSettings =
    (target.swiftSettings ?? []) + [
      .enableUpcomingFeature("ExistentialAny"),  // SE-0335
      .enableUpcomingFeature("InternalImportsByDefault"),  // SE-0409
      .enableUpcomingFeature("MemberImportVisibility"),  // SE-0444
      .enableUpcomingFeature("NonisolatedNonsendingByDefault"),  // SE-0461
      .enableUpcomingFeature("InferIsolatedConformances"),  // SE-0470
      .strictMemorySafety(),  // SE-0458
    ]
}

// The programs' own modules check exclusive access in debug builds and tests alone: see
// docs/decisions.md, 43. The libraries, which others build, keep their checks.
//
// Functions of the gateway are sections that the linker can order: see 48. Those of `settle`, which
// runs through most of a file once, are better left together.
let client: Set = ["Arguments", "CStart", "Control", "Devices", "JSON", "Screen", "settle"]
for target in package.targets where target.type != .system && !target.name.hasPrefix("LastOut") {
  let order = client.contains(target.name) ? [] : ["-Xfrontend", "-function-sections"]
  target.swiftSettings?.append(
    .unsafeFlags(["-enforce-exclusivity=unchecked"] + order, .when(configuration: .release))
  )
}
