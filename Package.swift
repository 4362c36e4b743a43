// swift-tools-version: 6.1
import PackageDescription

// One target a module, layered as docs/architecture.md draws them: arrows only point down a level.
// MILLRACE_ONLY=MillSQL,MillState keeps just those modules, their tests and what they stand on, so that
// work on an engine module never builds the server packages.

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    // Kernels are called across modules: without this a generic one runs unspecialised (160 times slower).
    .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release)),
]

struct Module {
    var name: String
    var uses: [String] = []
    var packages: [(product: String, package: String)] = []
    var tests = true
}

let nio = [("NIOCore", "swift-nio"), ("NIOPosix", "swift-nio")]
let log = [("Logging", "swift-log")]

let modules: [Module] = [
    // L1
    Module(name: "MillBase", tests: false),
    // L2
    Module(name: "MillColumnar", uses: ["MillBase", "CMemory"]),
    Module(name: "MillIO", uses: ["MillBase", "CFile", "CSemaphore"]),
    Module(name: "MillSQL", uses: ["MillBase"]),
    Module(name: "MillPgWire", uses: ["MillBase"]),
    Module(name: "MillKafkaWire", uses: ["MillBase", "CChecksum", "CZstd", "CLZ4", "CSnappy", "CZlib"]),
    // L3
    Module(name: "MillConnectorKit", uses: ["MillBase", "MillColumnar", "MillIO"], tests: false),
    Module(name: "MillText", uses: ["MillBase", "MillColumnar", "MillConnectorKit", "CJSONDecode"]),
    Module(name: "MillExpr", uses: ["MillBase", "MillColumnar", "CRE2", "CText"]),
    Module(name: "MillState", uses: ["MillBase", "MillColumnar", "MillIO", "CMemory"]),
    Module(name: "MillLog", uses: ["MillBase", "MillColumnar", "MillIO", "MillKafkaWire", "CChecksum"]),
    Module(name: "MillParquet", uses: ["MillBase", "MillColumnar", "MillIO", "CMemory", "CZstd", "CLZ4", "CSnappy", "CZlib"]),
    Module(name: "MillAvro", uses: ["MillBase", "MillIO", "CSnappy", "CZlib", "CZstd"]),
    Module(name: "MillHTTPClient", uses: ["MillBase", "MillColumnar", "MillIO", "CCurl"]),
    Module(name: "MillObjectStore", uses: ["MillBase", "MillColumnar", "MillIO", "MillHTTPClient", "CCrypto"]),
    // L4
    Module(name: "MillPlan", uses: ["MillBase", "MillColumnar", "MillExpr"]),
    Module(name: "MillCatalog", uses: ["MillBase", "MillColumnar", "MillPlan"]),
    Module(name: "MillTemplate", uses: ["MillBase"], packages: [("Yams", "Yams")]),
    Module(name: "MillStore", uses: ["MillBase", "MillColumnar", "MillIO", "MillState", "MillConnectorKit", "CChecksum"]),
    Module(
        name: "MillIceberg", uses: ["MillBase", "MillColumnar", "MillIO", "MillAvro", "MillParquet", "MillObjectStore", "CZlib"]),
    // L5
    Module(name: "MillCatalogClient", uses: ["MillBase", "MillIO", "MillHTTPClient", "MillObjectStore", "MillIceberg"]),
    Module(name: "MillBinder", uses: ["MillBase", "MillColumnar", "MillConnectorKit", "MillSQL", "MillExpr", "MillPlan", "MillCatalog"]),
    Module(name: "MillOptimizer", uses: ["MillBase", "MillColumnar", "MillConnectorKit", "MillExpr", "MillPlan"]),
    Module(name: "MillDataflow", uses: ["MillBase", "MillColumnar", "MillIO", "MillExpr", "MillState", "MillStore", "MillPlan", "MillConnectorKit"]),
    Module(
        name: "MillMeta", uses: ["MillBase", "MillColumnar", "MillConnectorKit", "MillPlan", "MillCatalog", "CChecksum"], packages: [("GRDB", "GRDB.swift")]),
    Module(
        name: "MillConnectors",
        uses: [
            "MillBase", "MillColumnar", "MillIO", "MillText", "MillLog", "MillKafkaWire", "MillParquet", "MillConnectorKit", "MillHTTPClient",
            "MillObjectStore", "MillIceberg", "MillCatalogClient", "CMemory", "CRdkafka",
        ]),
    Module(
        name: "MillLakeCatalog", uses: ["MillBase", "MillColumnar", "MillIO", "MillObjectStore", "MillIceberg", "CCrypto"], packages: [("GRDB", "GRDB.swift")]),
    // L6
    Module(
        name: "MillEngine",
        uses: [
            "MillBase", "MillColumnar", "MillIO", "MillSQL", "MillExpr", "MillState", "MillStore", "MillLog", "MillConnectorKit", "MillPlan", "MillCatalog",
            "MillBinder", "MillOptimizer", "MillDataflow", "MillMeta", "MillText", "MillHTTPClient", "MillConnectors", "CMemory",
        ]),
    // L7
    Module(name: "MillPgServer", uses: ["MillBase", "MillColumnar", "MillPgWire", "MillSQL", "MillExpr", "MillEngine"], packages: nio + log),
    Module(name: "MillKafkaServer", uses: ["MillBase", "MillIO", "MillKafkaWire", "MillLog"], packages: nio + log),
    Module(name: "MillHTTPServer", uses: ["MillBase"], packages: nio + log + [("NIOHTTP1", "swift-nio")]),
    Module(
        name: "MillBench",
        uses: [
            "MillBase", "MillColumnar", "MillIO", "MillText", "MillPgWire", "MillKafkaWire", "MillLog", "MillConnectorKit", "MillConnectors", "MillPlan", "MillStore",
            "MillDataflow", "MillEngine", "CJSONDecode", "CRdkafka",
        ]),
    Module(name: "MillTestKit", uses: ["MillBase", "MillColumnar", "MillIO", "MillSQL", "MillExpr", "MillState", "MillStore", "MillPlan", "MillDataflow"], tests: false),
]

/// Tests may use MillTestKit and everything their module uses; a few need more.
let testExtras: [String: [String]] = [
    "MillOptimizer": ["MillSQL", "MillCatalog", "MillBinder", "MillMeta"],
    "MillEngine": ["MillParquet", "MillObjectStore"],
    "MillCatalogClient": ["MillColumnar", "MillLakeCatalog"],
    "MillConnectors": ["MillLakeCatalog"],
    "MillLog": [],
    "MillDataflow": [],
    "MillStore": [],
]

/// Files beside a module's tests that are read, not built.
let testData: [String: [String]] = [
    "MillExpr": ["postgres-15-expressions.txt"],
    "MillPgServer": ["psql-15-catalog-queries.sql"],
]

let executable = Module(
    name: "millrace",
    uses: [
        "MillBase", "MillCatalog", "MillColumnar", "MillIO", "MillKafkaWire", "MillMeta", "MillEngine", "MillConnectors", "MillLog",
        "MillPgServer", "MillPgWire", "MillKafkaServer",
        "MillTemplate", "MillBench", "MillStore", "MillPlan", "MillConnectorKit", "MillHTTPServer", "MillHTTPClient", "MillObjectStore",
        "MillIceberg", "MillLakeCatalog", "CMemory",
    ],
    packages: nio + log + [("ArgumentParser", "swift-argument-parser"), ("ServiceLifecycle", "swift-service-lifecycle"), ("UnixSignals", "swift-service-lifecycle")])

let systemLibraries: [String: Target] = [
    "CRdkafka": .systemLibrary(name: "CRdkafka", pkgConfig: "rdkafka", providers: [.apt(["librdkafka-dev"])]),
    "CZstd": .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
    "CLZ4": .systemLibrary(name: "CLZ4", pkgConfig: "liblz4", providers: [.apt(["liblz4-dev"])]),
    "CSnappy": .systemLibrary(name: "CSnappy", pkgConfig: "snappy", providers: [.apt(["libsnappy-dev"])]),
    "CZlib": .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    "CCurl": .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    "CCrypto": .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    "CMemory": .target(name: "CMemory", cSettings: [.unsafeFlags(["-O3"])]),
    "CFile": .target(name: "CFile"),
    "CSemaphore": .target(name: "CSemaphore"),
    "CChecksum": .target(name: "CChecksum", cSettings: [.unsafeFlags(["-O3"])]),
    "CText": .target(name: "CText", cSettings: [.unsafeFlags(["-O3"])]),
    "CRE2": .target(name: "CRE2", cxxSettings: [.unsafeFlags(["-O3"])], linkerSettings: [.linkedLibrary("re2")]),
    "CJSONDecode": .target(name: "CJSONDecode", cxxSettings: [.unsafeFlags(["-O3"])], linkerSettings: [.linkedLibrary("simdjson")]),
]

let packages: [String: Package.Dependency] = [
    "swift-nio": .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    "swift-log": .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    "swift-argument-parser": .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    "swift-service-lifecycle": .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    "GRDB.swift": .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    "Yams": .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
]

let only = Context.environment["MILLRACE_ONLY"].map { Set($0.split(separator: ",").map(String.init)) }
let byName = Dictionary(uniqueKeysWithValues: (modules + [executable]).map { ($0.name, $0) })

/// Everything that `names` stand on, themselves included.
func closure(_ names: some Sequence<String>) -> Set<String> {
    var found: Set<String> = []
    var open = Array(names)
    while let name = open.popLast() {
        guard found.insert(name).inserted else { continue }
        open += byName[name]?.uses ?? []
    }
    return found
}

func testUses(_ module: Module) -> [String] {
    [module.name] + module.uses + (testExtras[module.name] ?? []) + (module.name == "MillBase" ? [] : ["MillTestKit"])
}

let hasTests = { (module: Module) in Context.environment["MILLRACE_NO_TESTS"] == nil && module.tests }
let wanted = only.map { names in
    closure(names.flatMap { name in byName[name].map { hasTests($0) ? testUses($0) : [name] } ?? [name] })
} ?? closure(byName.keys)

var targets: [Target] = []
for module in modules where wanted.contains(module.name) {
    targets.append(
        .target(
            name: module.name,
            dependencies: module.uses.map { .byName(name: $0) } + module.packages.map { .product(name: $0.product, package: $0.package) },
            swiftSettings: strict))
    if hasTests(module), only?.contains(module.name) ?? true {
        var seen: Set<String> = []
        targets.append(
            .testTarget(
                name: "\(module.name)Tests",
                dependencies: testUses(module).filter { seen.insert($0).inserted }.map { .byName(name: $0) }
                    + module.packages.map { .product(name: $0.product, package: $0.package) },
                exclude: testData[module.name] ?? [],
                swiftSettings: strict))
    }
}
if wanted.contains(executable.name) {
    targets.append(
        .executableTarget(
            name: executable.name,
            dependencies: executable.uses.map { .byName(name: $0) } + executable.packages.map { .product(name: $0.product, package: $0.package) },
            swiftSettings: strict))
}
targets += systemLibraries.filter { wanted.contains($0.key) }.sorted { $0.key < $1.key }.map(\.value)

let usedPackages = Set((modules + [executable]).filter { wanted.contains($0.name) }.flatMap { $0.packages.map(\.package) })

let package = Package(
    name: "millrace",
    platforms: [.macOS(.v15)],
    dependencies: packages.filter { usedPackages.contains($0.key) }.sorted { $0.key < $1.key }.map(\.value),
    targets: targets,
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx20)
