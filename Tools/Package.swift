// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that nobody who uses the library resolves what the command needs.
let package = Package(
  name: "holdfast-tools",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "holdfast", targets: ["HoldfastTool"]),
    .library(name: "HoldfastCommands", targets: ["HoldfastCommands"]),
  ],
  dependencies: [
    // The name is needed: without it the package is called after the folder it was cloned into.
    .package(name: "holdfast", path: ".."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.6.0"),
  ],
  targets: [
    // What the command does, for tests and other programs to call.
    .target(
      name: "HoldfastCommands",
      dependencies: [
        .product(name: "Holdfast", package: "holdfast"), .product(name: "HoldfastStore", package: "holdfast"),
        .product(name: "HoldfastCoreData", package: "holdfast"), .product(name: "HoldfastModelFile", package: "holdfast"),
        .product(name: "HoldfastModelCode", package: "holdfast"), .product(name: "HoldfastJSONStore", package: "holdfast"),
        .product(name: "HoldfastXMLStore", package: "holdfast"), .product(name: "HoldfastBinaryStore", package: "holdfast"),
        .product(name: "HoldfastSQLiteStore", package: "holdfast"),
      ]),
    // Parses the command line, and nothing else. Not named like the product, which a file system that ignores case would take for
    // the library.
    .executableTarget(
      name: "HoldfastTool",
      dependencies: [
        "HoldfastCommands", .product(name: "Holdfast", package: "holdfast"), .product(name: "HoldfastModelCode", package: "holdfast"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    .testTarget(
      name: "HoldfastCommandsTests",
      dependencies: [
        "HoldfastCommands", "HoldfastTool", .product(name: "Holdfast", package: "holdfast"),
        .product(name: "HoldfastStore", package: "holdfast"), .product(name: "HoldfastModelFile", package: "holdfast"),
        .product(name: "HoldfastJSONStore", package: "holdfast"),
        .product(name: "HoldfastXMLStore", package: "holdfast"), .product(name: "HoldfastBinaryStore", package: "holdfast"),
        .product(name: "HoldfastSQLiteStore", package: "holdfast"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)

let strict = Context.environment["HOLDFAST_WARNINGS_AS_ERRORS"] != nil
for target in package.targets {
  target.swiftSettings =
    [
      .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
      .enableUpcomingFeature("MemberImportVisibility"),
    ] + (strict ? [.treatAllWarnings(as: .error)] : [])
}
