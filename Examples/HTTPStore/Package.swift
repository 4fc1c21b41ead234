// swift-tools-version: 6.2
import PackageDescription

// The library's tests compile the macros without the trait, with the toolchain's own copy of swift-syntax.
let macros: Set<Package.Dependency.Trait> = Context.environment["HOLDFAST_HOST_SYNTAX"] == nil ? ["Macros"] : []

// A package of its own, so that packages that use the libraries don't resolve what the service needs.
let package = Package(
  name: "holdfast-http-store",
  platforms: [.macOS(.v15)],
  products: [.library(name: "HTTPStore", targets: ["HTTPStore"])],
  dependencies: [
    // The name is needed: without it the package is called after the folder it was cloned into.
    .package(name: "holdfast", path: "../..", traits: macros),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.24.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.81.0"),
  ],
  targets: [
    // The JSON of the service.
    .target(name: "ServiceAPI"),
    // The service. It knows nothing of Holdfast.
    .target(name: "HTTPService", dependencies: ["ServiceAPI", .product(name: "Hummingbird", package: "hummingbird")]),
    // The store.
    .target(
      name: "HTTPStore",
      dependencies: [
        "ServiceAPI", .product(name: "HoldfastStore", package: "holdfast"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"), .product(name: "NIOPosix", package: "swift-nio"),
      ]),
    // Runs the service and a client in one process.
    .executableTarget(
      name: "HTTPStoreExample", dependencies: ["HTTPService", "HTTPStore", .product(name: "Holdfast", package: "holdfast")]),
    .testTarget(
      name: "HTTPStoreTests",
      dependencies: [
        "HTTPService", "HTTPStore", "ServiceAPI", .product(name: "Holdfast", package: "holdfast"),
        .product(name: "HoldfastStore", package: "holdfast"), .product(name: "HoldfastStoreConformance", package: "holdfast"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)

let strict = Context.environment["HOLDFAST_WARNINGS_AS_ERRORS"] != nil
for target in package.targets {
  // Not MemberImportVisibility: Hummingbird and AsyncHTTPClient have interfaces whose members other packages declare.
  target.swiftSettings =
    [.enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault")]
    + (strict ? [.treatAllWarnings(as: .error)] : [])
}
