// swift-tools-version: 6.2
// Settle
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

/// What a list of modules means, in words.
func dependencies(_ names: some StringProtocol) -> [Target.Dependency] {
  names.split { $0 == " " || $0 == "\n" }.map { .byName(name: String($0)) }
}

/// The rows of a table with a line for each target: its name, and the modules that it uses.
func rows(_ table: String) -> [(name: String, dependencies: [Target.Dependency])] {
  table.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
    (String(line.prefix { $0 != ":" }), dependencies(line.drop { $0 != ":" }.dropFirst()))
  }
}

/// Modules, each in the folder of its name, with files that their binary carries.
func modules(_ table: String, files: [String: [String]] = [:]) -> [Target] {
  rows(table).map { name, dependencies in
    let files = files[name, default: []].map { Resource.embedInCode($0) }
    return .target(name: name, dependencies: dependencies, resources: files)
  }
}

/// Modules and programs that only tests use.
func supports(_ table: String, programs: Set<String>) -> [Target] {
  rows(table).map { name, dependencies in
    programs.contains(name)
      ? .executableTarget(name: name, dependencies: dependencies, path: "Tests/\(name)")
      : .target(name: name, dependencies: dependencies, path: "Tests/\(name)")
  }
}

/// Tests, which find the files of `Fixtures` by their own path.
func tests(_ table: String, withFixtures: Set<String>) -> [Target] {
  rows(table).map { name, dependencies in
    let files = withFixtures.contains(name) ? ["Fixtures"] : []
    return .testTarget(name: name, dependencies: dependencies, exclude: files)
  }
}

/// The module map of a C library, for `pkg-config` and for Debian.
func library(_ name: String, _ pkgConfig: String?, _ package: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// A program in `folder`.
func program(_ name: String, in folder: String, _ names: String) -> Target {
  .executableTarget(name: name, dependencies: dependencies(names), path: folder)
}

/// Arguments of the linker for a program that is shipped.
///
/// It is lld, because gold warns about a dlopen in the Swift runtime that is never reached.
func shipped(_ first: [String], _ linker: [String]) -> [LinkerSetting] {
  let common = ["-z", "pack-relative-relocs", "-z", "now"]
  let flags = first + ["-use-ld=lld"] + (common + linker).flatMap { ["-Xlinker", $0] }
  return [.unsafeFlags(flags, .when(platforms: [.linux], configuration: .release))]
}

/// The commit that is built, from `make build`; other builds do not know it.
let commit = Context.environment["SETTLE_COMMIT"] ?? ""

let libraries: [Target] = [
  library("CFYAML", "libfyaml", "libfyaml-dev"),
  library("CJansson", "jansson", "libjansson-dev"),
  library("CMicroHTTPD", "libmicrohttpd", "libmicrohttpd-dev"),
  library("CMosquitto", "libmosquitto", "libmosquitto-dev"),
  // SwiftPM warns about the feature macros of its pkgConfig; its module map names the libraries.
  library("CNcurses", nil, "libncurses-dev"),
  library("COpenSSL", "openssl", "libssl-dev"),
  library("CSQLite", "sqlite3", "libsqlite3-dev"),
  library("CUV", "libuv", "libuv1-dev"),
  library("CZLib", "zlib", "zlib1g-dev"),
  // What Glibc's module lacks.
  .systemLibrary(name: "CLinux"),
  // libnats, which is loaded when it is needed.
  .target(name: "CNATS"),
  .target(name: "CBuild", cSettings: [.define("SETTLE_COMMIT", to: "\"\(commit)\"")]),
]

/// The layers, from the bottom.
let layers =
  [.target(name: "Values", dependencies: ["JSON"], linkerSettings: [.linkedLibrary("m")])]
  + modules(
    """
    # The last-out queue: no dependency, no C library, no unsafe flag, so that others can use it.
    LastOut:
    LastOutTesting: LastOut
    # What is decided, without clock, lock or I/O. Where several gateways work as one, Cluster decides
    # who drives which devices, and what survives its end.
    JSON: CJansson
    Devices: JSON LastOut Values
    Commands: Devices JSON LastOut Values
    Routing: Devices JSON LastOut
    Durability: LastOut
    GatewayCore: Commands Devices Durability JSON LastOut Routing Values
    Cluster: Durability LastOut
    # Shared ground: command lines, the event loop, the log.
    Arguments: Values
    Operations: CUV LastOut
    # The ways in and out. Journal is what survives a crash, Engine the cluster's NATS JetStream,
    # HomeAssistant what other programs are told about devices, Panel the page that people touch.
    Configuration: CFYAML Devices JSON LastOut Operations Routing Values
    Control: CBuild CLinux JSON Values
    MQTT: CMosquitto COpenSSL Devices LastOut Operations Values
    Journal: CLinux CSQLite Durability LastOut Operations
    Engine: CNATS Cluster Durability JSON LastOut Operations
    HTTP: CMicroHTTPD CZLib Devices JSON LastOut Operations Values
    HomeAssistant: Configuration Devices JSON LastOut Values
    Panel:
    # The gateway, and what is around it. Import makes the files of a new installation and device
    # files from announcements; Screen is the full-screen stepper, which only the program draws.
    Import: Configuration Devices JSON LastOut MQTT Operations Routing Values
    Gateway: Cluster Commands Configuration Control Devices Durability Engine GatewayCore HTTP \
      HomeAssistant Import JSON Journal LastOut MQTT Operations Panel Routing Values
    Simulation: Commands Configuration Control Devices Gateway GatewayCore JSON LastOut MQTT \
      Operations Values
    Screen: Control Devices JSON LastOut Values
    """,
    files: [
      "Configuration": ["Resources", "Schemas"], "HTTP": ["Resources"], "Panel": ["Resources"],
    ]
  )

let programs: [Target] = [
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

/// What only tests use: lives among faults, lanes in radio meshes on virtual time, workers.
let stages = supports(
  """
  FaultSimulation: Commands Devices Durability GatewayCore JSON LastOut LastOutTesting Routing \
    Values
  ClusterSimulation: Cluster Commands Devices Durability GatewayCore JSON LastOut \
    LastOutTesting Values
  MeshSimulation: Commands Devices JSON LastOut LastOutTesting Values
  # Everything that reads bytes from outside, for the fuzzer and for tests.
  FuzzTargets: Cluster Configuration Control Devices Durability Engine Gateway GatewayCore HTTP \
    Import Journal LastOut MQTT Operations
  JournalDriver: Durability Journal LastOut
  JournalWorker: Durability Journal JournalDriver LastOut Operations WriteRecorder
  WriteRecorder:
  FaultySync: CSQLite
  TestBroker: CMosquitto LastOut Operations Simulation
  soak: ClusterSimulation FaultSimulation
  lanes: Devices MeshSimulation
  # Eight threads at everything the library has, for sanitizers: see .ci/stress.
  lastout-stress: LastOut LastOutTesting
  """,
  programs: ["JournalWorker", "lanes", "lastout-stress", "soak"]
)

let testing = tests(
  """
  LastOutTests: LastOut LastOutTesting
  DevicesTests: Devices JSON LastOut Values
  ConfigurationTests: Configuration Devices JSON LastOut Operations Routing Values
  CommandsTests: Commands Devices JSON LastOut LastOutTesting Values
  ControlTests: Control Devices JSON Operations Values
  ScreenTests: Control Devices JSON LastOut Screen Values
  GatewayCoreTests: Commands Devices Durability GatewayCore JSON LastOut LastOutTesting Routing \
      Values
  FaultSimulationTests: Commands FaultSimulation LastOutTesting Values
  ClusterTests: Cluster ClusterSimulation Durability LastOut
  EngineTests: Cluster Durability Engine FaultySync Journal LastOut Operations TestBroker
  MeshSimulationTests: Devices MeshSimulation
  HTTPTests: Devices HTTP JSON LastOut Operations
  HomeAssistantTests: Configuration Devices HomeAssistant JSON LastOut Values
  JSONTests: JSON
  ArgumentsTests: Arguments
  OperationsTests: LastOut Operations TestBroker
  FuzzTargetsTests: FuzzTargets
  MQTTTests: Devices LastOut MQTT Operations TestBroker
  JournalTests: CSQLite Durability FaultySync Journal JournalDriver JournalWorker LastOut \
      LastOutTesting
  GatewayTests: Cluster Commands Configuration Control Devices Gateway GatewayCore HomeAssistant \
      JSON LastOut LastOutTesting MQTT Operations Simulation TestBroker Values
  SimulationTests: Configuration Control Devices JSON LastOut Operations Simulation TestBroker \
      Values
  ImportTests: Configuration Devices HomeAssistant Import JSON LastOut LastOutTesting Operations \
      Routing Simulation TestBroker Values
  """,
  withFixtures: ["ConfigurationTests", "HomeAssistantTests", "ImportTests", "LastOutTests"]
)

// The benchmarks' Swift side, for `make bench` alone; and the fuzzer, for `.ci/fuzz` alone, whose
// corpus the tests replay. Nobody else waits for them.
var requested: [Target] = []
if Context.environment["SETTLE_BENCHMARKS"] != nil {
  requested += [
    program("bench", in: "Benchmarks/Swift", "Commands Devices JSON LastOut Operations")
  ]
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
  targets: libraries + layers + programs + stages + testing + requested,
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
