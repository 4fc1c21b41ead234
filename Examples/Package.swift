// swift-tools-version: 6.2
import PackageDescription

// The library's tests compile the macros without the trait, with the toolchain's own copy of swift-syntax.
let macros: Set<Package.Dependency.Trait> = Context.environment["HOLDFAST_HOST_SYNTAX"] == nil ? ["Macros"] : []

// A package of its own: its programs use the macros, and programs that use the libraries can have the same names.
let package = Package(
  name: "holdfast-examples",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "FirstGraph", targets: ["FirstGraph"]),
    .executable(name: "DogWalk", targets: ["DogWalk"]),
    .executable(name: "Warehouse", targets: ["Warehouse"]),
    .executable(name: "Packages", targets: ["Packages"]),
    .executable(name: "BowTies", targets: ["BowTies"]),
    .executable(name: "Moody", targets: ["Moody"]),
  ],
  dependencies: [
    // The name is needed: without it the package is called after the folder it was cloned into.
    .package(name: "holdfast", path: "..", traits: macros),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
  ],
  targets: [
    // The programs parse their command lines themselves, to show nothing but Holdfast.
    .target(
      name: "ExampleSupport",
      dependencies: [
        .product(name: "Holdfast", package: "holdfast"), .product(name: "HoldfastMemoryStore", package: "holdfast"),
        .product(name: "HoldfastJSONStore", package: "holdfast"), .product(name: "HoldfastXMLStore", package: "holdfast"),
        .product(name: "HoldfastBinaryStore", package: "holdfast"), .product(name: "HoldfastSQLiteStore", package: "holdfast"),
        .product(name: "Logging", package: "swift-log"),
      ]),
    .executableTarget(
      name: "FirstGraph",
      dependencies: [
        .product(name: "Holdfast", package: "holdfast"), .product(name: "HoldfastMemoryStore", package: "holdfast"),
      ]),
    .executableTarget(name: "DogWalk", dependencies: ["ExampleSupport", .product(name: "Holdfast", package: "holdfast")]),
    .executableTarget(name: "Warehouse", dependencies: ["ExampleSupport", .product(name: "Holdfast", package: "holdfast")]),
    .executableTarget(
      name: "Packages", dependencies: ["ExampleSupport", .product(name: "Holdfast", package: "holdfast")], exclude: ["sample-index"]),
    .executableTarget(
      name: "BowTies", dependencies: ["ExampleSupport", .product(name: "Holdfast", package: "holdfast")],
      resources: [.copy("SampleData.plist")]),
    .executableTarget(
      name: "Moody",
      dependencies: [
        "ExampleSupport", .product(name: "Holdfast", package: "holdfast"), .product(name: "HoldfastSQLiteStore", package: "holdfast"),
      ]),
    // The class of BowTies without macros.
    .target(name: "HandwrittenBowTies", dependencies: [.product(name: "Holdfast", package: "holdfast")]),
    // It runs the programs that it depends on.
    .testTarget(
      name: "ExamplesTests",
      dependencies: [
        "FirstGraph", "DogWalk", "Warehouse", "Packages", "BowTies", "Moody", "HandwrittenBowTies",
        .product(name: "Holdfast", package: "holdfast"), .product(name: "HoldfastMemoryStore", package: "holdfast"),
        .product(name: "HoldfastJSONStore", package: "holdfast"), .product(name: "HoldfastSQLiteStore", package: "holdfast"),
        .product(name: "HoldfastModelFile", package: "holdfast"), .product(name: "HoldfastTesting", package: "holdfast"),
        .product(name: "HoldfastStoreConformance", package: "holdfast"),
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

// The library's manifest has no plugins when its tests are compiled with optimisation.
if Context.environment["HOLDFAST_OPTIMIZED"] == nil {
  // The class of BowTies, which the build plugin generates from Xcode's file.
  package.targets += [
    .target(
      name: "GeneratedBowTies",
      dependencies: [.product(name: "Holdfast", package: "holdfast")],
      swiftSettings: package.targets[0].swiftSettings, plugins: [.plugin(name: "GenerateClassesInBuild", package: "holdfast")]),
    .testTarget(
      name: "GeneratedBowTiesTests",
      dependencies: [
        "BowTies", "GeneratedBowTies", .product(name: "Holdfast", package: "holdfast"),
        .product(name: "HoldfastMemoryStore", package: "holdfast"),
      ], swiftSettings: package.targets[0].swiftSettings),
    // It builds a package that uses the plugins.
    .testTarget(name: "PluginTests", swiftSettings: package.targets[0].swiftSettings),
  ]
}
