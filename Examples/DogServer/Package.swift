// swift-tools-version: 6.2
import PackageDescription

// The library's tests compile the macros without the trait, with the toolchain's own copy of swift-syntax.
let macros: Set<Package.Dependency.Trait> = Context.environment["HOLDFAST_HOST_SYNTAX"] == nil ? ["Macros"] : []

// A package of its own, so that packages that use the libraries don't resolve what a server needs.
let package = Package(
  name: "holdfast-dog-server",
  platforms: [.macOS(.v15)],
  products: [.executable(name: "DogServer", targets: ["DogServer"])],
  dependencies: [
    // The name is needed: without it the package is called after the folder it was cloned into.
    .package(name: "holdfast", path: "../..", traits: macros),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.24.0"),
  ],
  targets: [
    // The model, the requests and the answers.
    .target(
      name: "DogService",
      dependencies: [
        .product(name: "Holdfast", package: "holdfast"), .product(name: "HoldfastSQLiteStore", package: "holdfast"),
        .product(name: "HoldfastStore", package: "holdfast"), .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ]),
    // Parses the command line, and nothing else.
    .executableTarget(
      name: "DogServer",
      dependencies: [
        "DogService", .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "HoldfastSQLiteStore", package: "holdfast"), .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
      ]),
    .testTarget(
      name: "DogServiceTests",
      dependencies: [
        "DogService", "DogServer", .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "HoldfastSQLiteStore", package: "holdfast"), .product(name: "HoldfastStore", package: "holdfast"),
        .product(name: "HoldfastStoreConformance", package: "holdfast"), .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdTesting", package: "hummingbird"), .product(name: "Logging", package: "swift-log"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)

let strict = Context.environment["HOLDFAST_WARNINGS_AS_ERRORS"] != nil
for target in package.targets {
  // Not MemberImportVisibility: Hummingbird has interfaces whose members other packages declare.
  target.swiftSettings =
    [.enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault")]
    + (strict ? [.treatAllWarnings(as: .error)] : [])
}
