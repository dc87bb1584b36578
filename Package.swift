// swift-tools-version: 6.2
// Settle
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

// MARK: Kinds of targets

/// What a list of modules means, in words.
func dependencies(_ names: String) -> [Target.Dependency] {
  names.split { $0 == " " || $0 == "\n" }.map { .byName(name: String($0)) }
}

/// A module in the folder of its name.
func module(_ name: String, _ names: String = "", files: [String] = []) -> Target {
  .target(
    name: name,
    dependencies: dependencies(names),
    resources: files.map { .embedInCode($0) }
  )
}

/// The module map of a C library, for `pkg-config` and for Debian.
func library(_ name: String, _ pkgConfig: String?, _ package: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// A program in `folder`.
func program(_ name: String, in folder: String, _ names: String) -> Target {
  .executableTarget(name: name, dependencies: dependencies(names), path: folder)
}

/// A module that only tests use.
func support(_ name: String, _ names: String = "") -> Target {
  .target(name: name, dependencies: dependencies(names), path: "Tests/\(name)")
}

/// Tests, which find the files of `Fixtures` by their own path.
func tests(_ name: String, hasFixtures: Bool = false, _ names: String) -> Target {
  .testTarget(
    name: name,
    dependencies: dependencies(names),
    exclude: hasFixtures ? ["Fixtures"] : []
  )
}

/// Arguments of the linker for a program that is shipped.
///
/// It is lld, because gold warns about a dlopen in the Swift runtime that is never reached.
func shipped(_ first: [String], _ linker: [String]) -> [LinkerSetting] {
  let common = ["-z", "pack-relative-relocs", "-z", "now"]
  let flags = first + ["-use-ld=lld"] + (common + linker).flatMap { ["-Xlinker", $0] }
  return [.unsafeFlags(flags, .when(platforms: [.linux], configuration: .release))]
}

// MARK: Layers, from the bottom

/// The last-out queue: no dependency, no C library, no unsafe flag, so that others can use it.
let queue: [Target] = [
  module("LastOut"),
  module("LastOutTesting", "LastOut"),
]

/// What is decided, without clock, lock or I/O.
let decisions: [Target] = [
  library("CJansson", "jansson", "libjansson-dev"),
  module("JSON", "CJansson"),
  .target(name: "Values", dependencies: ["JSON"], linkerSettings: [.linkedLibrary("m")]),
  module("Devices", "JSON LastOut Values"),
  module("Commands", "Devices JSON LastOut Values"),
  module("Routing", "Devices JSON LastOut"),
  module("Durability", "LastOut"),
  module("GatewayCore", "Commands Devices Durability JSON LastOut Routing Values"),
  // Who drives which devices, and what survives its end, where several gateways work as one.
  module("Cluster", "Durability LastOut"),
]

/// Shared ground: command lines, the event loop, the log, what Glibc's module lacks.
let ground: [Target] = [
  library("CUV", "libuv", "libuv1-dev"),
  .systemLibrary(name: "CLinux"),
  module("Arguments", "Values"),
  module("Operations", "CUV LastOut"),
]

/// The ways in and out.
let surfaces: [Target] = [
  library("CMosquitto", "libmosquitto", "libmosquitto-dev"),
  library("COpenSSL", "openssl", "libssl-dev"),
  library("CFYAML", "libfyaml", "libfyaml-dev"),
  library("CSQLite", "sqlite3", "libsqlite3-dev"),
  library("CMicroHTTPD", "libmicrohttpd", "libmicrohttpd-dev"),
  library("CZLib", "zlib", "zlib1g-dev"),
  // The commit that is built, from `make build`; other builds do not know it.
  .target(
    name: "CBuild",
    cSettings: [
      .define("SETTLE_COMMIT", to: "\"\(Context.environment["SETTLE_COMMIT"] ?? "")\"")
    ]
  ),
  module("Control", "CBuild CLinux JSON Values"),
  module("MQTT", "CMosquitto COpenSSL Devices LastOut Operations Values"),
  module(
    "Configuration",
    "CFYAML Devices JSON LastOut Operations Routing Values",
    files: ["Resources", "Schemas"]
  ),
  // What survives a crash.
  module("Journal", "CLinux CSQLite Durability LastOut Operations"),
  // The cluster's engine: NATS JetStream, by libnats, which is loaded when it is needed.
  .target(name: "CNATS"),
  module("Engine", "CNATS Cluster Durability JSON LastOut Operations"),
  module(
    "HTTP",
    "CMicroHTTPD CZLib Devices JSON LastOut Operations Values",
    files: ["Resources"]
  ),
  // What other programs are told about devices.
  module("HomeAssistant", "Configuration Devices JSON LastOut Values"),
  // The page that people touch: HTML, styles and scripts inside the binary.
  module("Panel", files: ["Resources"]),
]

/// The gateway, what is around it, and the two programs.
let programs: [Target] = [
  module(
    "Gateway",
    """
    Cluster Commands Configuration Control Devices Durability Engine GatewayCore HTTP HomeAssistant
    JSON Journal LastOut MQTT Operations Panel Routing Values
    """
  ),
  module(
    "Simulation",
    """
    Commands Configuration Control Devices Gateway GatewayCore JSON LastOut MQTT Operations Values
    """
  ),
  // A broker that is tested, the files of a new installation, and device files from announcements.
  module(
    "Import",
    "Configuration Devices JSON LastOut MQTT Operations Routing Values"
  ),
  // The full-screen stepper as values; only the program draws. ncurses has no pkgConfig here, about
  // whose feature macros SwiftPM warns; the module map names the libraries.
  module("Screen", "Control Devices JSON LastOut Values"),
  library("CNcurses", nil, "libncurses-dev"),
  .executableTarget(
    name: "settle",
    dependencies: dependencies("Arguments Control JSON Values"),
    // It is started for every tap: no dynamic linker, no symbols, and still position independent.
    linkerSettings: shipped(
      ["-static-executable", "-Xclang-linker", "-static-pie"],
      ["--strip-all"]
    )
  ),
  .executableTarget(
    name: "settled",
    dependencies: dependencies(
      """
      Arguments CLinux CNcurses Configuration Control Devices Engine Gateway GatewayCore Import JSON
      Journal LastOut MQTT Operations Screen Simulation Values
      """
    ),
    // Nothing loads this program's symbols, and without them it needs less memory. All symbols are
    // bound at the start, after which their table is read-only. The build ID names the debug file.
    linkerSettings: shipped([], ["--no-export-dynamic", "--build-id=sha1"])
  ),
]

/// Lives among faults, and lanes in radio meshes, on virtual time.
let simulations: [Target] = [
  support(
    "FaultSimulation",
    "Commands Devices Durability GatewayCore JSON LastOut LastOutTesting Routing Values"
  ),
  support(
    "ClusterSimulation",
    "Cluster Commands Devices Durability GatewayCore JSON LastOut LastOutTesting Values"
  ),
  program("soak", in: "Tests/soak", "ClusterSimulation FaultSimulation"),
  support("MeshSimulation", "Commands Devices JSON LastOut LastOutTesting Values"),
  program("lanes", in: "Tests/lanes", "Devices MeshSimulation"),
]

let testing: [Target] = [
  .testTarget(
    name: "LastOutTests",
    dependencies: ["LastOut", "LastOutTesting"],
    resources: [.copy("Fixtures")]
  ),
  // Eight threads at everything the library has, for sanitizers: see .ci/stress.
  program("lastout-stress", in: "Tests/LastOutStress", "LastOut LastOutTesting"),
  tests("DevicesTests", "Devices JSON LastOut Values"),
  tests(
    "ConfigurationTests",
    hasFixtures: true,
    "Configuration Devices JSON LastOut Routing Values"
  ),
  tests("CommandsTests", "Commands Devices JSON LastOut LastOutTesting Values"),
  tests("ControlTests", "Control Devices JSON Operations Values"),
  tests("ScreenTests", "Control Devices JSON LastOut Screen Values"),
  tests(
    "GatewayCoreTests",
    """
    Commands Devices Durability GatewayCore JSON LastOut LastOutTesting Routing Values
    """
  ),
  tests("FaultSimulationTests", "Commands FaultSimulation LastOutTesting Values"),
  tests("ClusterTests", "Cluster ClusterSimulation Durability LastOut"),
  tests(
    "EngineTests",
    "Cluster Durability Engine FaultySync Journal LastOut Operations TestBroker"
  ),
  tests("MeshSimulationTests", "Devices MeshSimulation"),
  tests("HTTPTests", "Devices HTTP JSON LastOut Operations"),
  tests(
    "HomeAssistantTests",
    hasFixtures: true,
    "Configuration Devices HomeAssistant JSON LastOut Values"
  ),
  tests("JSONTests", "JSON"),
  tests("ArgumentsTests", "Arguments"),
  tests("OperationsTests", "LastOut Operations TestBroker"),
  // Everything that reads bytes from outside, for the fuzzer and for tests.
  support(
    "FuzzTargets",
    """
    Cluster Configuration Control Devices Durability Engine Gateway GatewayCore HTTP Import Journal
    LastOut MQTT Operations
    """
  ),
  tests("FuzzTargetsTests", "FuzzTargets"),
  tests("MQTTTests", "LastOut MQTT Operations TestBroker"),
  tests(
    "JournalTests",
    """
    CSQLite Durability FaultySync Journal JournalDriver JournalWorker LastOut LastOutTesting
    """
  ),
  support("JournalDriver", "Durability Journal LastOut"),
  program(
    "JournalWorker",
    in: "Tests/JournalWorker",
    "Durability Journal JournalDriver LastOut Operations WriteRecorder"
  ),
  support("WriteRecorder"),
  support("FaultySync", "CSQLite"),
  tests(
    "GatewayTests",
    """
    Cluster Commands Configuration Control Devices Gateway GatewayCore HomeAssistant JSON LastOut
    LastOutTesting MQTT Operations Simulation TestBroker Values
    """
  ),
  tests(
    "SimulationTests",
    """
    Configuration Control Devices JSON LastOut Operations Simulation TestBroker Values
    """
  ),
  tests(
    "ImportTests",
    hasFixtures: true,
    """
    Configuration Devices HomeAssistant Import JSON LastOut LastOutTesting Operations Routing
    Simulation TestBroker Values
    """
  ),
  support("TestBroker", "CMosquitto LastOut Operations Simulation"),
]

// The benchmarks' Swift side, for `make bench` alone; and the fuzzer, for `.ci/fuzz` alone, whose
// corpus the tests replay. Nobody else waits for them.
var requested: [Target] = []
if Context.environment["SETTLE_BENCHMARKS"] != nil {
  requested.append(
    program("bench", in: "Benchmarks/Swift", "Commands Devices JSON LastOut Operations")
  )
}
if Context.environment["SETTLE_FUZZING"] != nil {
  let fuzz = program("fuzz", in: "Tests/fuzz", "FuzzTargets Operations")
  fuzz.exclude = ["corpus"]
  requested.append(fuzz)
}

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
  targets: queue + decisions + ground + surfaces + programs + simulations + testing + requested,
  swiftLanguageModes: [.v6]
)

for target in package.targets where target.type != .system {
  target.swiftSettings = [
    .enableUpcomingFeature("ExistentialAny"),  // SE-0335
    .enableUpcomingFeature("InternalImportsByDefault"),  // SE-0409
    .enableUpcomingFeature("MemberImportVisibility"),  // SE-0444
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),  // SE-0461
    .enableUpcomingFeature("InferIsolatedConformances"),  // SE-0470
    .strictMemorySafety(),  // SE-0458
  ]
}
