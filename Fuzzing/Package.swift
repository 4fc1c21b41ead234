// swift-tools-version: 6.2
import PackageDescription

// Programs for libFuzzer. A package of its own, because they link only where the sanitizer is; `Scripts/fuzz` builds and runs them.
// A new one is a folder in Sources with a function LLVMFuzzerTestOneInput, a line here, and a folder of small files in Seeds.
let package = Package(
  name: "holdfast-fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [
    // The name is needed: without it the package is called after the folder it was cloned into.
    .package(name: "holdfast", path: "..")
  ],
  targets: [
    .executableTarget(name: "FuzzPropertyList", dependencies: [.product(name: "HoldfastStore", package: "holdfast")])
  ],
  swiftLanguageModes: [.v6]
)

for target in package.targets {
  target.swiftSettings = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    // The entry is libFuzzer's.
    .unsafeFlags(["-parse-as-library"]),
  ]
}
