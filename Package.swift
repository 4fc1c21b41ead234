// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

let package = Package(
  name: "holdfast",
  // The first versions whose Swift library has locks and atomics.
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "HoldfastStore", targets: ["HoldfastStore"]),
    .library(name: "HoldfastPropertyList", targets: ["HoldfastPropertyList"]),
    .library(name: "HoldfastFiles", targets: ["HoldfastFiles"]),
    .library(name: "HoldfastAtomicStore", targets: ["HoldfastAtomicStore"]),
    .library(name: "HoldfastRowStore", targets: ["HoldfastRowStore"]),
    .library(name: "HoldfastEncryption", targets: ["HoldfastEncryption"]),
    .library(name: "HoldfastStoreWrappers", targets: ["HoldfastStoreWrappers"]),
    .library(name: "HoldfastStoreRecording", targets: ["HoldfastStoreRecording"]),
    .library(name: "HoldfastCoreData", targets: ["HoldfastCoreData"]),
    .library(name: "HoldfastMemoryStore", targets: ["HoldfastMemoryStore"]),
    .library(name: "HoldfastJSONStore", targets: ["HoldfastJSONStore"]),
    .library(name: "HoldfastXMLStore", targets: ["HoldfastXMLStore"]),
    .library(name: "HoldfastBinaryStore", targets: ["HoldfastBinaryStore"]),
    .library(name: "HoldfastSQLiteStore", targets: ["HoldfastSQLiteStore"]),
    .library(name: "HoldfastModelFile", targets: ["HoldfastModelFile"]),
    .library(name: "HoldfastModelCode", targets: ["HoldfastModelCode"]),
    .library(name: "Holdfast", targets: ["Holdfast"]),
    .plugin(name: "GenerateClasses", targets: ["GenerateClasses"]),
    .plugin(name: "GenerateClassesInBuild", targets: ["GenerateClassesInBuild"]),
    .library(name: "HoldfastStoreConformance", targets: ["HoldfastStoreConformance"]),
    .library(name: "HoldfastTesting", targets: ["HoldfastTesting"]),
  ],
  traits: [
    .trait(name: "Macros", description: "The macros @Entity and @Composite. Needs swift-syntax, whose first build takes minutes."),
    .trait(name: "Encryption", description: "Encrypted files: EncryptedFileSystem with AES-GCM. Needs swift-crypto."),
    .trait(name: "Tracing", description: "Spans of store requests: TracingStore with a tracer. Needs swift-distributed-tracing."),
    .default(enabledTraits: []),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    // Resolved only by packages that enable a trait.
    .package(url: "https://github.com/apple/swift-crypto", "3.12.0"..<"5.0.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.2.0"),
    .package(url: "https://github.com/swiftlang/swift-syntax", "603.0.1"..<"604.0.0"),
  ],
  targets: [
    .systemLibrary(name: "CHoldfastSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite3"])]),
    .systemLibrary(name: "CHoldfastYajl", pkgConfig: "yajl", providers: [.apt(["libyajl-dev"]), .brew(["yajl"])]),
    .systemLibrary(name: "CHoldfastLibXML2", pkgConfig: "libxml-2.0", providers: [.apt(["libxml2-dev"]), .brew(["libxml2"])]),
    .systemLibrary(name: "CHoldfastZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    .target(name: "HoldfastSupport"),
    .target(name: "HoldfastStore", dependencies: ["HoldfastSupport", .product(name: "Logging", package: "swift-log")]),
    .target(name: "HoldfastPropertyList", dependencies: ["HoldfastStore"]),
    .target(name: "HoldfastRowStore", dependencies: ["HoldfastStore"]),
    .target(
      name: "HoldfastStoreWrappers",
      dependencies: [
        "HoldfastRowStore", "HoldfastStore", "HoldfastSupport",
        .product(name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"])),
      ]),
    .target(name: "HoldfastStoreRecording", dependencies: ["Holdfast", "HoldfastFiles", "HoldfastStore"]),
    .target(
      name: "HoldfastCoreData",
      dependencies: ["Holdfast", "HoldfastModelFile", "HoldfastPropertyList", "HoldfastSQLiteStore", "HoldfastStore"]),
    .target(name: "CHoldfastPOSIX"),
    .target(name: "HoldfastFiles", dependencies: ["HoldfastStore", "CHoldfastPOSIX"]),
    .target(
      name: "HoldfastEncryption",
      dependencies: [
        "HoldfastFiles", "HoldfastStore", .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Encryption"])),
      ]),
    .target(name: "HoldfastAtomicStore", dependencies: ["HoldfastFiles", "HoldfastPropertyList", "HoldfastStore", "HoldfastSupport"]),
    .target(name: "HoldfastMemoryStore", dependencies: ["HoldfastAtomicStore", "HoldfastStore"]),
    .target(name: "HoldfastJSONStore", dependencies: ["HoldfastAtomicStore", "HoldfastStore", "CHoldfastYajl"]),
    .target(name: "HoldfastXMLStore", dependencies: ["HoldfastAtomicStore", "HoldfastPropertyList", "HoldfastStore", "CHoldfastLibXML2"]),
    .target(name: "HoldfastBinaryStore", dependencies: ["HoldfastAtomicStore", "HoldfastPropertyList", "HoldfastStore"]),
    .target(
      name: "HoldfastSQLiteStore",
      dependencies: [
        "HoldfastFiles", "HoldfastPropertyList", "HoldfastStore", "HoldfastSupport", "CHoldfastSQLite",
        .product(name: "Logging", package: "swift-log"),
      ]),
    .target(
      name: "HoldfastModelFile",
      dependencies: ["HoldfastPropertyList", "HoldfastStore", "CHoldfastPOSIX", "CHoldfastLibXML2", "CHoldfastZlib"]),
    .target(name: "HoldfastModelCode", dependencies: ["HoldfastStore"]),
    // What the plugins run. It parses its command line itself, so that packages that use the libraries resolve no package for it.
    .executableTarget(name: "HoldfastGenerate", dependencies: ["HoldfastModelCode", "HoldfastModelFile", "HoldfastStore"]),
    .plugin(
      name: "GenerateClasses",
      capability: .command(
        intent: .custom(verb: "generate-classes", description: "Writes classes for the models of a package."),
        permissions: [.writeToPackageDirectory(reason: "The classes are written beside the models.")]),
      dependencies: ["HoldfastGenerate"]),
    .plugin(name: "GenerateClassesInBuild", capability: .buildTool(), dependencies: ["HoldfastGenerate"]),
    // A plugin can't be imported without compiling everything for the host, too. So what it does is in a library that tests import.
    .target(
      name: "HoldfastMacros",
      dependencies: [
        .product(name: "SwiftParser", package: "swift-syntax", condition: .when(traits: ["Macros"])),
        .product(name: "SwiftSyntax", package: "swift-syntax", condition: .when(traits: ["Macros"])),
        .product(name: "SwiftSyntaxBuilder", package: "swift-syntax", condition: .when(traits: ["Macros"])),
        .product(name: "SwiftSyntaxMacros", package: "swift-syntax", condition: .when(traits: ["Macros"])),
        .product(name: "SwiftDiagnostics", package: "swift-syntax", condition: .when(traits: ["Macros"])),
      ]),
    .macro(
      name: "HoldfastMacrosPlugin",
      dependencies: [
        "HoldfastMacros", .product(name: "SwiftSyntax", package: "swift-syntax", condition: .when(traits: ["Macros"])),
        .product(name: "SwiftSyntaxMacros", package: "swift-syntax", condition: .when(traits: ["Macros"])),
        .product(name: "SwiftCompilerPlugin", package: "swift-syntax", condition: .when(traits: ["Macros"])),
      ]),
    .target(
      name: "Holdfast",
      dependencies: [
        "HoldfastPropertyList", "HoldfastStore", "HoldfastSupport", .product(name: "Logging", package: "swift-log"),
        .target(name: "HoldfastMacrosPlugin", condition: .when(traits: ["Macros"])),
      ]),
    .target(name: "HoldfastStoreConformance", dependencies: ["Holdfast", "HoldfastFiles", "HoldfastRowStore", "HoldfastStore"]),
    .target(
      name: "HoldfastTesting", dependencies: ["Holdfast", "HoldfastMemoryStore", "HoldfastStore", "HoldfastStoreConformance"]),
    // A store in a format of its own, which an article explains.
    .target(name: "CSVStore", dependencies: ["HoldfastAtomicStore"], path: "Sources/Examples/CSVStore"),
    // A store of rows, which another article explains.
    .target(name: "LogStore", dependencies: ["HoldfastRowStore"], path: "Sources/Examples/LogStore"),
    // Shared by several test targets.
    .target(
      name: "TestSupport",
      dependencies: [
        "Holdfast", "HoldfastStore", "HoldfastAtomicStore", "HoldfastEncryption", "HoldfastStoreConformance", "HoldfastSupport",
      ],
      path: "Tests/TestSupport"),
    .target(name: "SQLiteTestSupport", dependencies: ["CHoldfastSQLite"], path: "Tests/SQLiteTestSupport"),
    .testTarget(name: "HoldfastSupportTests", dependencies: ["TestSupport", "HoldfastSupport"]),
    .testTarget(name: "HoldfastStoreTests", dependencies: ["TestSupport", "HoldfastStore"]),
    .testTarget(name: "HoldfastPropertyListTests", dependencies: ["TestSupport", "HoldfastPropertyList", "HoldfastStore"]),
    .testTarget(name: "HoldfastFilesTests", dependencies: ["TestSupport", "HoldfastFiles", "HoldfastStore", "HoldfastStoreConformance"]),
    .testTarget(
      name: "HoldfastEncryptionTests",
      dependencies: [
        "TestSupport", "HoldfastEncryption", "HoldfastFiles", "HoldfastStore", "HoldfastStoreConformance",
        .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Encryption"])),
      ]),
    .testTarget(
      name: "HoldfastStoreWrappersTests",
      dependencies: [
        "TestSupport", "HoldfastStoreWrappers", "HoldfastRowStore", "HoldfastStore", "Holdfast", "HoldfastMemoryStore",
        "HoldfastSQLiteStore", "HoldfastStoreConformance", .product(name: "Logging", package: "swift-log"),
        .product(name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"])),
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"])),
      ]),
    .testTarget(
      name: "HoldfastStoreRecordingTests",
      dependencies: [
        "TestSupport", "HoldfastStoreRecording", "HoldfastRowStore", "HoldfastStore", "Holdfast", "HoldfastFiles", "HoldfastMemoryStore",
        "HoldfastJSONStore", "HoldfastSQLiteStore", "HoldfastStoreConformance", "LogStore",
      ]),
    .testTarget(
      name: "HoldfastAtomicStoreTests", dependencies: ["TestSupport", "HoldfastAtomicStore", "HoldfastStore", "Holdfast", "CSVStore"]),
    .testTarget(
      name: "HoldfastSQLiteStoreTests",
      dependencies: [
        "TestSupport", "SQLiteTestSupport", "HoldfastSQLiteStore", "HoldfastPropertyList", "Holdfast", "HoldfastFiles", "HoldfastStore",
        "CHoldfastSQLite",
        .product(name: "Logging", package: "swift-log"),
      ]),
    .testTarget(
      name: "HoldfastTests",
      dependencies: [
        "TestSupport", "Holdfast", "HoldfastStore", "HoldfastMemoryStore", "HoldfastJSONStore", "HoldfastXMLStore", "HoldfastBinaryStore",
        "HoldfastSQLiteStore",
        "HoldfastStoreConformance",
        "HoldfastAtomicStore", "HoldfastFiles",
      ]),
    .testTarget(
      name: "HoldfastCoreDataTests",
      dependencies: [
        "TestSupport", "SQLiteTestSupport", "HoldfastCoreData", "Holdfast", "HoldfastStore", "HoldfastModelFile", "HoldfastSQLiteStore",
        "HoldfastXMLStore",
      ]),
    .testTarget(
      name: "MigrationTests",
      dependencies: [
        "TestSupport", "SQLiteTestSupport", "Holdfast", "HoldfastStore", "HoldfastAtomicStore", "HoldfastJSONStore", "HoldfastXMLStore",
        "HoldfastBinaryStore", "HoldfastSQLiteStore",
        "HoldfastCoreData", "HoldfastModelFile", "HoldfastPropertyList", "HoldfastStoreConformance",
      ], exclude: ["Golden"]),
    .testTarget(
      name: "StoreConformanceTests",
      dependencies: [
        "TestSupport",
        "HoldfastStoreConformance", "Holdfast", "HoldfastStore", "HoldfastMemoryStore", "HoldfastJSONStore", "HoldfastXMLStore",
        "HoldfastBinaryStore",
        "HoldfastSQLiteStore",
        "HoldfastAtomicStore", "HoldfastFiles", "CSVStore", "LogStore", "HoldfastStoreWrappers", "HoldfastEncryption",
        .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Encryption"])),
      ]),
    .testTarget(
      name: "HoldfastJSONStoreTests",
      dependencies: [
        "TestSupport", "HoldfastJSONStore", "HoldfastAtomicStore", "HoldfastFiles", "HoldfastStore", "Holdfast", "HoldfastStoreConformance",
      ]),
    .testTarget(
      name: "HoldfastXMLStoreTests",
      dependencies: [
        "TestSupport", "HoldfastXMLStore", "HoldfastAtomicStore", "HoldfastFiles", "HoldfastStore", "Holdfast", "HoldfastStoreConformance",
      ]),
    .testTarget(
      name: "HoldfastBinaryStoreTests",
      dependencies: [
        "TestSupport", "HoldfastBinaryStore", "HoldfastPropertyList", "HoldfastAtomicStore", "HoldfastFiles", "HoldfastStore", "Holdfast",
        "HoldfastStoreConformance",
      ]),
    .testTarget(
      name: "HoldfastModelFileTests",
      dependencies: ["TestSupport", "HoldfastModelFile", "HoldfastPropertyList", "HoldfastStore", "HoldfastSQLiteStore", "CHoldfastSQLite"]),
    // Its folders `Generated` and `Fleet` contain what the generator writes.
    .testTarget(
      name: "HoldfastModelCodeTests",
      dependencies: [
        "TestSupport", "Holdfast", "HoldfastMemoryStore", "HoldfastJSONStore", "HoldfastXMLStore", "HoldfastBinaryStore",
        "HoldfastSQLiteStore", "HoldfastModelCode", "HoldfastModelFile", "HoldfastStore",
      ]),
    .testTarget(
      name: "DocumentationTests",
      dependencies: [
        "TestSupport",
        "Holdfast", "HoldfastStore", "HoldfastMemoryStore", "HoldfastJSONStore", "HoldfastXMLStore", "HoldfastBinaryStore",
        "HoldfastSQLiteStore",
        "HoldfastAtomicStore",
        "HoldfastFiles", "HoldfastStoreConformance", "HoldfastSupport", "HoldfastModelCode", "HoldfastModelFile", "CSVStore",
        "HoldfastRowStore",
        "HoldfastStoreWrappers", "HoldfastStoreRecording", "HoldfastTesting", "HoldfastCoreData", "LogStore", "HoldfastPropertyList",
        "HoldfastEncryption",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["Encryption"])),
        .product(name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"])),
      ]),
    .testTarget(
      name: "HoldfastTestingTests",
      dependencies: ["TestSupport", "HoldfastTesting", "Holdfast", "HoldfastStore", "HoldfastStoreConformance"]),
    // The macros and what their classes do. Without the macros it has no tests.
    .testTarget(
      name: "HoldfastMacrosTests",
      dependencies: [
        "TestSupport", "Holdfast", "HoldfastMemoryStore", "HoldfastJSONStore", "HoldfastXMLStore", "HoldfastBinaryStore",
        "HoldfastSQLiteStore", "HoldfastModelFile", "HoldfastMacros",
        .product(name: "SwiftParser", package: "swift-syntax", condition: .when(traits: ["Macros"])),
        .product(name: "SwiftSyntax", package: "swift-syntax", condition: .when(traits: ["Macros"])),
        .product(name: "SwiftSyntaxMacros", package: "swift-syntax", condition: .when(traits: ["Macros"])),
        .product(name: "SwiftSyntaxMacroExpansion", package: "swift-syntax", condition: .when(traits: ["Macros"])),
        .product(name: "SwiftDiagnostics", package: "swift-syntax", condition: .when(traits: ["Macros"])),
      ]),
    // Damaged files, full disks, locks, killed processes, wrong values and misuse, through the whole stack.
    .testTarget(
      name: "ReliabilityTests",
      dependencies: [
        "TestSupport", "Holdfast", "HoldfastStore", "HoldfastMemoryStore", "HoldfastJSONStore", "HoldfastXMLStore", "HoldfastBinaryStore",
        "HoldfastSQLiteStore",
        "HoldfastStoreConformance",
        "HoldfastAtomicStore", "HoldfastFiles", "HoldfastEncryption", "CHoldfastSQLite",
      ], exclude: ["README.md"]),
    .testTarget(name: "ArchitectureTests", dependencies: ["TestSupport"]),
    // Its cases are files that must not compile, so the build excludes them.
    .testTarget(name: "CompileFailTests", dependencies: ["Holdfast", "TestSupport"], exclude: ["Cases"]),
  ],
  swiftLanguageModes: [.v6]
)

// Compiler settings of every target. CI treats warnings as errors.
let strict = Context.environment["HOLDFAST_WARNINGS_AS_ERRORS"] != nil
for target in package.targets where target.type != .system && target.type != .plugin {
  target.swiftSettings =
    [
      .enableUpcomingFeature("ExistentialAny"),
      .enableUpcomingFeature("InternalImportsByDefault"),
      .enableUpcomingFeature("MemberImportVisibility"),
    ] + (strict ? [.treatAllWarnings(as: .error)] : [])
}

// Scripts/test compiles the library with optimisation and assertions: the tests take a third of the processor time, and run the code that
// programs run. The conformance kit and the model files would take longer to optimise than their tests gain.
if Context.environment["HOLDFAST_OPTIMIZED"] != nil {
  // What the plugins of generated classes run would also be compiled for the host.
  package.products.removeAll { $0 is Product.Plugin }
  package.targets.removeAll { $0.type == .plugin }
  let unoptimized = ["HoldfastStoreConformance", "HoldfastModelFile", "HoldfastModelCode", "HoldfastMacros"]
  for target in package.targets where target.type == .regular || target.type == .test {
    let isOptimized = target.type == .regular && !unoptimized.contains(target.name)
    let optimization = isOptimized ? ["-O", "-assert-config", "Debug"] : []
    // Nothing imports a test target, so its module needs no pass of its own.
    let module = target.type == .test ? ["-no-emit-module-separately-wmo"] : []
    target.swiftSettings?.append(
      .unsafeFlags(optimization + module + ["-whole-module-optimization", "-num-threads", "2"]))
  }
}

// Scripts/sanitize compiles the tests for the thread sanitizer, which doesn't know Swift's Mutex by itself.
if Context.environment["HOLDFAST_THREAD_SANITIZER"] != nil {
  package.targets.append(.target(name: "CThreadSanitizer", path: "Tests/CThreadSanitizer", exclude: ["suppressions.txt"]))
  package.targets.first { $0.name == "TestSupport" }?.dependencies.append("CThreadSanitizer")
}

// With the folder of the toolchain's own swift-syntax here, the macros are compiled in seconds and without the trait. Scripts/test sets it.
if let folder = Context.environment["HOLDFAST_HOST_SYNTAX"] {
  let libraries = [
    "SwiftBasicFormat", "SwiftCompilerPluginMessageHandling", "SwiftDiagnostics", "SwiftOperators", "SwiftParser", "SwiftSyntax",
    "SwiftSyntaxBuilder", "SwiftSyntaxMacroExpansion", "SwiftSyntaxMacros",
  ]
  package.dependencies.removeAll {
    if case .sourceControl(_, let location, _) = $0.kind { location.hasSuffix("/swift-syntax") } else { false }
  }
  for target in package.targets where target.type != .system && target.type != .plugin {
    target.swiftSettings?.append(.define("Macros"))
    let uses = target.dependencies.count
    target.dependencies.removeAll { if case .targetItem("HoldfastMacrosPlugin", _) = $0 { true } else { false } }
    if target.dependencies.count < uses { target.dependencies.append("HoldfastMacrosPlugin") }
    guard ["HoldfastMacros", "HoldfastMacrosPlugin", "HoldfastMacrosTests"].contains(target.name) else { continue }
    target.dependencies.removeAll { if case .productItem(_, "swift-syntax", _, _) = $0 { true } else { false } }
    target.swiftSettings?.append(.unsafeFlags(["-I", folder]))
    target.linkerSettings = [
      .unsafeFlags(["-L", folder, "-Xlinker", "-rpath", "-Xlinker", folder] + libraries.map { "-l\($0)" })
    ]
  }
}
