// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that nobody who uses the library resolves what the measurements need.
let package = Package(
  name: "holdfast-benchmarks",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "holdfast-bench", targets: ["HoldfastBench"])
  ],
  dependencies: [
    // The name is needed: without it the package is called after the folder it was cloned into.
    .package(name: "holdfast", path: ".."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
  ],
  targets: [
    .target(name: "CBenchmarkSupport", linkerSettings: [.linkedLibrary("sqlite3")]),
    .target(name: "BenchmarkData"),
    .target(name: "BenchmarkRunner", dependencies: ["BenchmarkData", "CBenchmarkSupport"]),
    .target(
      name: "BenchmarkStores",
      dependencies: [
        "BenchmarkData", "BenchmarkRunner", .product(name: "Holdfast", package: "holdfast"),
        .product(name: "HoldfastStore", package: "holdfast"), .product(name: "HoldfastMemoryStore", package: "holdfast"),
        .product(name: "HoldfastJSONStore", package: "holdfast"),
        .product(name: "HoldfastXMLStore", package: "holdfast"), .product(name: "HoldfastBinaryStore", package: "holdfast"),
        .product(name: "HoldfastSQLiteStore", package: "holdfast"), .product(name: "HoldfastCoreData", package: "holdfast"),
      ]),
    .executableTarget(
      name: "HoldfastBench",
      dependencies: [
        "BenchmarkData", "BenchmarkRunner", "BenchmarkStores", .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ]),
    .testTarget(name: "BenchmarkDataTests", dependencies: ["BenchmarkData"]),
    .testTarget(name: "BenchmarkRunnerTests", dependencies: ["BenchmarkData", "BenchmarkRunner"]),
    .testTarget(
      name: "BenchmarkStoresTests",
      dependencies: [
        "BenchmarkData", "BenchmarkRunner", "BenchmarkStores", .product(name: "Holdfast", package: "holdfast"),
        .product(name: "HoldfastStore", package: "holdfast"), .product(name: "HoldfastMemoryStore", package: "holdfast"),
        .product(name: "HoldfastJSONStore", package: "holdfast"),
        .product(name: "HoldfastXMLStore", package: "holdfast"), .product(name: "HoldfastBinaryStore", package: "holdfast"),
        .product(name: "HoldfastSQLiteStore", package: "holdfast"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)

// One place says how every target is compiled; CI adds warnings as errors.
let strict = Context.environment["HOLDFAST_WARNINGS_AS_ERRORS"] != nil
for target in package.targets where target.name != "CBenchmarkSupport" {
  target.swiftSettings =
    [
      .enableUpcomingFeature("ExistentialAny"),
      .enableUpcomingFeature("InternalImportsByDefault"),
      .enableUpcomingFeature("MemberImportVisibility"),
    ] + (strict ? [.treatAllWarnings(as: .error)] : [])
}

// With the toolchain's own copy of swift-syntax, which compiles in seconds, classes with macros are measured, too. See Scripts/host-syntax.
if Context.environment["HOLDFAST_HOST_SYNTAX"] != nil {
  package.targets.first { $0.name == "BenchmarkStores" }?.swiftSettings?.append(.define("Macros"))
}

// Scripts/test compiles what is measured as a release does, so that CI can compare the stores without compiling the library again.
if Context.environment["HOLDFAST_OPTIMIZED"] != nil {
  for target in package.targets where target.type != .test && target.name != "CBenchmarkSupport" {
    target.swiftSettings?.append(.unsafeFlags(["-O", "-whole-module-optimization", "-num-threads", "2"]))
  }
}
