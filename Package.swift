// swift-tools-version: 6.2
// Settle
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let package = Package(
  name: "settle",
  // The first systems with `Synchronization` and task executors, which LastOut uses. The gateway is
  // for Linux.
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
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

    // JSON values, pointers and the writer.
    .target(name: "JSON"),

    // What is decided, without clock, lock or I/O.
    .target(name: "Values", dependencies: ["JSON"], linkerSettings: [.linkedLibrary("m")]),
    .target(name: "Devices", dependencies: ["JSON", "LastOut", "Values"]),
    .target(name: "Commands", dependencies: ["Devices", "JSON", "LastOut", "Values"]),
    .target(
      name: "Routing",
      dependencies: ["Devices", "JSON", "LastOut"]
    ),
    .target(name: "Durability", dependencies: ["LastOut"]),
    .target(
      name: "GatewayCore",
      dependencies: ["Commands", "Devices", "Durability", "JSON", "LastOut", "Routing", "Values"]
    ),

    // Who drives which devices, and what survives its end, where several gateways work as one.
    .target(name: "Cluster", dependencies: ["Durability", "LastOut"]),

    // The cluster's engine: NATS JetStream, by libnats, which is loaded when it is needed.
    .target(name: "CNATS"),
    .target(
      name: "Engine",
      dependencies: [
        "CNATS", "Cluster", "Durability", "JSON", "JSONParsing", "LastOut", "Operations",
      ]
    ),

    // Shared ground: JSON text, command lines, the event loop, the log.
    .systemLibrary(name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
    .target(name: "JSONParsing", dependencies: ["CJansson", "JSON"]),
    .target(name: "Arguments", dependencies: ["Values"]),
    .systemLibrary(name: "CUV", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
    .target(name: "Operations", dependencies: ["CUV", "LastOut"]),

    // The ways in and out.
    // The commit that is built, from `make build`; other builds do not know it.
    .target(
      name: "CBuild",
      cSettings: [
        .define("SETTLE_COMMIT", to: "\"\(Context.environment["SETTLE_COMMIT"] ?? "")\"")
      ]
    ),
    .target(
      name: "Control",
      dependencies: ["CBuild", "CLinux", "JSON", "JSONParsing", "Values"]
    ),
    // Calls of Linux that are not part of Swift's Glibc module.
    .systemLibrary(name: "CLinux"),
    .systemLibrary(
      name: "CMosquitto",
      pkgConfig: "libmosquitto",
      providers: [.apt(["libmosquitto-dev"])]
    ),
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .target(
      name: "MQTT",
      dependencies: ["CMosquitto", "COpenSSL", "Devices", "LastOut", "Operations", "Values"]
    ),
    .systemLibrary(name: "CFYAML", pkgConfig: "libfyaml", providers: [.apt(["libfyaml-dev"])]),
    .target(
      name: "Configuration",
      dependencies: ["CFYAML", "Devices", "JSON", "LastOut", "Operations", "Routing", "Values"],
      resources: [.embedInCode("Resources"), .embedInCode("Schemas")]
    ),
    // What survives a crash.
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .target(
      name: "Journal",
      dependencies: ["CLinux", "CSQLite", "Durability", "LastOut", "Operations"]
    ),
    .systemLibrary(
      name: "CMicroHTTPD",
      pkgConfig: "libmicrohttpd",
      providers: [.apt(["libmicrohttpd-dev"])]
    ),
    .systemLibrary(name: "CZLib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .target(
      name: "HTTP",
      dependencies: [
        "CMicroHTTPD", "CZLib", "Devices", "JSON", "LastOut", "Operations", "Values",
      ],
      resources: [.embedInCode("Resources")]
    ),
    // What other programs are told about devices.
    .target(
      name: "HomeAssistant",
      dependencies: ["Configuration", "Devices", "JSON", "LastOut", "Values"]
    ),
    // The page that people touch: HTML, styles and scripts inside the binary.
    .target(name: "Panel", resources: [.embedInCode("Resources")]),
    .target(
      name: "Gateway",
      dependencies: [
        "Cluster", "Commands", "Configuration", "Control", "Devices", "Durability", "Engine",
        "GatewayCore", "HTTP", "HomeAssistant", "JSON", "JSONParsing", "Journal", "LastOut", "MQTT",
        "Operations", "Panel", "Routing", "Values",
      ]
    ),
    .target(
      name: "Simulation",
      dependencies: [
        "Commands", "Configuration", "Control", "Devices", "Gateway", "GatewayCore", "JSON",
        "JSONParsing", "LastOut", "MQTT", "Operations", "PrivateBroker", "Values",
      ]
    ),
    .target(name: "PrivateBroker", dependencies: ["Operations"]),
    // A broker that is tested, the files of a new installation, and device files from announcements.
    .target(
      name: "Import",
      dependencies: [
        "Configuration", "Devices", "JSON", "JSONParsing", "LastOut", "MQTT", "Operations",
        "Routing", "Values",
      ]
    ),

    // One gateway's life among faults, on virtual time: for tests and `make soak`.
    .target(
      name: "FaultSimulation",
      dependencies: [
        "Commands", "Devices", "Durability", "GatewayCore", "JSON", "LastOut", "LastOutTesting",
        "Routing", "Values",
      ],
      path: "Tests/FaultSimulation"
    ),
    // Several gateways as one, among faults of machines, links, engine and broker.
    .target(
      name: "ClusterSimulation",
      dependencies: [
        "Cluster", "Commands", "Devices", "Durability", "GatewayCore", "JSON", "LastOut",
        "LastOutTesting", "Values",
      ],
      path: "Tests/ClusterSimulation"
    ),
    .executableTarget(
      name: "soak",
      dependencies: ["ClusterSimulation", "FaultSimulation"],
      path: "Tests/soak"
    ),

    // Lanes in simulated radio meshes: for tests and `make lanes`.
    .target(
      name: "MeshSimulation",
      dependencies: ["Commands", "Devices", "JSON", "LastOut", "LastOutTesting", "Values"],
      path: "Tests/MeshSimulation"
    ),
    .executableTarget(
      name: "lanes",
      dependencies: ["Devices", "MeshSimulation"],
      path: "Tests/lanes"
    ),

    // The full-screen stepper as values; only the program draws.
    .target(name: "Screen", dependencies: ["Control", "Devices", "JSON", "LastOut", "Values"]),
    // No pkgConfig: SwiftPM warns about its feature macros; the module map names the libraries.
    .systemLibrary(name: "CNcurses", providers: [.apt(["libncurses-dev"])]),

    // The two programs.
    .executableTarget(
      name: "settle",
      dependencies: ["Arguments", "Control", "JSON", "JSONParsing", "Values"],
      // It is started for every tap: no dynamic linker, no symbols, and still position independent.
      // lld, because gold warns about a dlopen in the Swift runtime that is never reached.
      linkerSettings: [
        .unsafeFlags(
          [
            "-static-executable", "-Xclang-linker", "-static-pie", "-use-ld=lld", "-Xlinker",
            "--strip-all", "-Xlinker", "-z", "-Xlinker", "now", "-Xlinker", "-z", "-Xlinker",
            "pack-relative-relocs",
          ],
          .when(platforms: [.linux], configuration: .release)
        )
      ]
    ),
    .executableTarget(
      name: "settled",
      dependencies: [
        "Arguments", "CLinux", "CNcurses", "Configuration", "Control", "Devices", "Engine",
        "Gateway", "GatewayCore", "Import", "JSON", "Journal", "LastOut", "MQTT", "Operations",
        "Screen", "Simulation", "Values",
      ],
      // Nothing loads this program's symbols, and without them it needs less memory. All symbols are
      // bound at the start, after which their table is read-only. The build ID names the debug file.
      linkerSettings: [
        .unsafeFlags(
          [
            "-use-ld=lld", "-Xlinker", "--no-export-dynamic", "-Xlinker", "-z", "-Xlinker",
            "pack-relative-relocs", "-Xlinker", "-z", "-Xlinker", "now", "-Xlinker",
            "--build-id=sha1",
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
    .testTarget(name: "DevicesTests", dependencies: ["Devices", "JSON", "LastOut", "Values"]),
    .testTarget(
      name: "ConfigurationTests",
      dependencies: ["Configuration", "Devices", "JSON", "LastOut", "Routing", "Values"],
      exclude: ["Fixtures"]
    ),
    .testTarget(
      name: "CommandsTests",
      dependencies: ["Commands", "Devices", "JSON", "LastOut", "LastOutTesting", "Values"]
    ),
    .testTarget(
      name: "ControlTests",
      dependencies: ["Control", "Devices", "JSON", "JSONParsing", "Operations", "Values"]
    ),
    .testTarget(
      name: "ScreenTests",
      dependencies: ["Control", "Devices", "JSON", "LastOut", "Screen", "Values"]
    ),
    .testTarget(
      name: "GatewayCoreTests",
      dependencies: [
        "Commands", "Devices", "Durability", "GatewayCore", "JSON", "JSONParsing", "LastOut",
        "LastOutTesting", "Routing", "Values",
      ]
    ),
    .testTarget(
      name: "FaultSimulationTests",
      dependencies: ["Commands", "FaultSimulation", "LastOutTesting", "Values"]
    ),
    .testTarget(
      name: "ClusterTests",
      dependencies: ["Cluster", "ClusterSimulation", "Durability", "LastOut"]
    ),
    .testTarget(
      name: "EngineTests",
      dependencies: [
        "Cluster", "Durability", "Engine", "FaultySync", "Journal", "LastOut", "Operations",
        "PrivateBroker", "TestBroker",
      ]
    ),
    .testTarget(name: "MeshSimulationTests", dependencies: ["Devices", "MeshSimulation"]),
    .testTarget(
      name: "HTTPTests",
      dependencies: [
        "Devices", "HTTP", "JSON", "JSONParsing", "LastOut", "Operations", "PrivateBroker",
      ]
    ),
    .testTarget(
      name: "HomeAssistantTests",
      dependencies: [
        "Configuration", "Devices", "HomeAssistant", "JSON", "JSONParsing", "LastOut", "Values",
      ],
      exclude: ["Fixtures"]
    ),
    .testTarget(name: "JSONParsingTests", dependencies: ["JSON", "JSONParsing"]),
    .testTarget(name: "ArgumentsTests", dependencies: ["Arguments"]),
    .testTarget(
      name: "OperationsTests",
      dependencies: ["LastOut", "Operations", "PrivateBroker", "TestBroker"]
    ),
    // Everything that reads bytes from outside, for the fuzzer and for tests.
    .target(
      name: "FuzzTargets",
      dependencies: [
        "Cluster", "Configuration", "Control", "Devices", "Durability", "Engine", "Gateway",
        "GatewayCore", "HTTP", "Import", "Journal", "LastOut", "MQTT", "Operations",
      ],
      path: "Tests/FuzzTargets"
    ),
    .testTarget(name: "FuzzTargetsTests", dependencies: ["FuzzTargets"]),
    .testTarget(
      name: "MQTTTests",
      dependencies: [
        "LastOut", "MQTT", "Operations", "PrivateBroker", "TestBroker",
      ]
    ),
    .testTarget(
      name: "JournalTests",
      dependencies: [
        "CSQLite", "Durability", "FaultySync", "Journal", "JournalDriver", "JournalWorker",
        "LastOut",
        "LastOutTesting",
      ]
    ),
    .target(
      name: "JournalDriver",
      dependencies: ["Durability", "Journal", "LastOut"],
      path: "Tests/JournalDriver"
    ),
    .executableTarget(
      name: "JournalWorker",
      dependencies: [
        "Durability", "Journal", "JournalDriver", "LastOut", "Operations", "WriteRecorder",
      ],
      path: "Tests/JournalWorker"
    ),
    .target(name: "WriteRecorder", path: "Tests/WriteRecorder"),
    .target(name: "FaultySync", dependencies: ["CSQLite"], path: "Tests/FaultySync"),
    .testTarget(
      name: "GatewayTests",
      dependencies: [
        "Cluster", "Commands", "Configuration", "Control", "Devices", "Gateway", "GatewayCore",
        "HomeAssistant", "JSON", "JSONParsing", "LastOut", "LastOutTesting", "MQTT", "Operations",
        "PrivateBroker", "Simulation", "TestBroker", "Values",
      ]
    ),
    .testTarget(
      name: "SimulationTests",
      dependencies: [
        "Configuration", "Control", "Devices", "JSON", "JSONParsing", "LastOut", "Operations",
        "PrivateBroker", "Simulation", "TestBroker", "Values",
      ]
    ),
    .testTarget(
      name: "ImportTests",
      dependencies: [
        "Configuration", "Devices", "Import", "JSON", "JSONParsing", "LastOut", "LastOutTesting",
        "Operations", "PrivateBroker", "Routing", "Simulation", "TestBroker", "Values",
      ],
      exclude: ["Fixtures"]
    ),
    .target(
      name: "TestBroker",
      dependencies: ["CMosquitto", "LastOut", "Operations", "PrivateBroker", "Simulation"],
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
      dependencies: ["Commands", "Devices", "JSON", "LastOut", "Operations"],
      path: "Benchmarks/Swift"
    )
  )
}

// The fuzzer, for `.ci/fuzz` alone; the tests replay its corpus.
if Context.environment["SETTLE_FUZZING"] != nil {
  package.targets.append(
    .executableTarget(
      name: "fuzz",
      dependencies: ["FuzzTargets", "Operations"],
      path: "Tests/fuzz",
      exclude: ["corpus"]
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
