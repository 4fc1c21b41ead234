// swift-tools-version: 6.2
import PackageDescription

/// The programs, and the libraries whose reader each of them fuzzes.
let targets = [
  "ModelContents": ["HoldfastModelFile", "HoldfastStore"], "CompiledModels": ["HoldfastModelFile", "HoldfastStore"],
  "PropertyLists": ["HoldfastModelFile", "HoldfastStore"], "XMLStores": ["HoldfastXMLStore", "HoldfastStore", "HoldfastStoreConformance"],
  "BinaryStores": ["HoldfastBinaryStore", "HoldfastStore", "HoldfastStoreConformance"],
  "SQLiteStores": ["HoldfastSQLiteStore", "HoldfastStore"], "ModelsAsJSON": ["HoldfastStore"],
  "JSONStores": ["HoldfastJSONStore", "HoldfastStore", "HoldfastStoreConformance"],
]

// A package of its own: its programs link with the fuzzer alone. Scripts/fuzz builds and runs them.
let package = Package(
  name: "holdfast-fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "holdfast", path: "..")],
  targets: targets.sorted { $0.key < $1.key }.map { name, libraries in
    .executableTarget(
      name: name, dependencies: libraries.map { .product(name: $0, package: "holdfast") },
      // The fuzzer has the entry point.
      swiftSettings: [.enableUpcomingFeature("InternalImportsByDefault"), .unsafeFlags(["-parse-as-library"])])
  },
  swiftLanguageModes: [.v6]
)
