// swift-tools-version: 6.2
import PackageDescription

// A package of its own: its programs link with the fuzzer alone. Scripts/fuzz builds and runs them.
let package = Package(
  name: "holdfast-fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "holdfast", path: "..")],
  targets: ["ModelContents", "CompiledModels", "PropertyLists"].map { name in
    .executableTarget(
      name: name,
      dependencies: [
        .product(name: "HoldfastModelFile", package: "holdfast"), .product(name: "HoldfastStore", package: "holdfast"),
      ],
      // The fuzzer has the entry point.
      swiftSettings: [.unsafeFlags(["-parse-as-library"])])
  },
  swiftLanguageModes: [.v6]
)
