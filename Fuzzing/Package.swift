// swift-tools-version: 6.2
import PackageDescription

/// The programs, and the libraries that each of them uses.
let targets = [
  "ModelContents": ["HoldfastModelFile", "HoldfastStore"], "CompiledModels": ["HoldfastModelFile", "HoldfastStore"],
  "MappingModels": ["HoldfastModelFile"],
  "PropertyLists": ["HoldfastModelFile", "HoldfastPropertyList"], "XMLStores": ["HoldfastXMLStore", "HoldfastStore", "SimulatedFiles"],
  "BinaryStores": ["HoldfastBinaryStore", "HoldfastStore", "SimulatedFiles"],
  "SQLiteStores": ["HoldfastSQLiteStore", "HoldfastStore"], "ModelsAsJSON": ["HoldfastStore"],
  "JSONStores": ["HoldfastJSONStore", "HoldfastStore", "SimulatedFiles"],
]

// A package of its own: its programs link with the fuzzer alone. Scripts/fuzz builds and runs them.
let package = Package(
  name: "holdfast-fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "holdfast", path: "..")],
  targets: [
    // The simulated file system of the conformance kit, without the kit and the framework: both would take minutes to optimise.
    .target(
      name: "SimulatedFiles", dependencies: [.product(name: "HoldfastFiles", package: "holdfast")],
      swiftSettings: [.enableUpcomingFeature("InternalImportsByDefault")])
  ]
    + targets.sorted { $0.key < $1.key }.map { name, libraries in
      .executableTarget(
        name: name,
        dependencies: libraries.map { $0 == "SimulatedFiles" ? .target(name: $0) : .product(name: $0, package: "holdfast") },
        // The fuzzer has the entry point.
        swiftSettings: [.enableUpcomingFeature("InternalImportsByDefault"), .unsafeFlags(["-parse-as-library"])])
    },
  swiftLanguageModes: [.v6]
)
