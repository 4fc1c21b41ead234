import Foundation
import Testing

/// A package that depends on this one generates classes with both plugins. Its targets have the names of examples, which no library takes
/// away: of those in the packages of examples, and of `CSVStore` and `TestSupport` in the package of the library.
///
/// Building it takes minutes, so the test runs with `HOLDFAST_TESTS=full`.
@Suite struct PluginTests {
  private static let isFull = ProcessInfo.processInfo.environment["HOLDFAST_TESTS"] == "full"

  @Test(.enabled(if: isFull, "It builds a package, which takes minutes.")) func aPackageGeneratesItsClassesWithBothPlugins() throws {
    let package = try PackageFolder()
    try package.write(Self.manifest, to: "Package.swift")
    try package.write(Self.stock, to: "Sources/Warehouse/Stock.xcdatamodeld/Stock.xcdatamodel/contents")
    for target in ["Warehouse", "CSVStore", "TestSupport"] { try package.write("", to: "Sources/\(target)/Empty.swift") }
    try package.write(Self.walks(""), to: "Sources/DogWalk/Walks.xcdatamodel/contents")
    try package.write(Self.program, to: "Sources/DogWalk/main.swift")

    let generate = [
      "package", "--allow-writing-to-package-directory", "generate-classes", "--target", "Warehouse", "--public",
    ]
    let missing = try package.swift(generate + ["--check"])
    #expect(missing.status != 0 && missing.text.contains("outdated: Crate+Class.swift"), "\(missing.text)")
    #expect(package.names(in: "Sources/Warehouse/Stock").isEmpty)
    let written = try package.swift(generate)
    try #require(written.status == 0, "\(written.text)")
    #expect(written.text.contains("written: Crate+Properties.swift"), "\(written.text)")
    #expect(package.names(in: "Sources/Warehouse/Stock") == ["Crate+Class.swift", "Crate+Properties.swift", "StockModelClasses.swift"])
    let checked = try package.swift(generate + ["--check"])
    #expect(checked.status == 0 && !checked.text.contains("outdated:"), "\(checked.text)")

    let first = try package.swift(["run", "DogWalk"])
    try #require(first.status == 0, "\(first.text)")
    #expect(first.text.hasSuffix("[30]\n1 of 1\n"), "\(first.text)")
    // The build plugin generates the classes again when the model has changed, and the command finds its own outdated.
    try package.write(Self.walks(#"<entity name="Dog" representedClassName="Dog"/>"#), to: "Sources/DogWalk/Walks.xcdatamodel/contents")
    let second = try package.swift(["run", "DogWalk"])
    #expect(second.status == 0 && second.text.hasSuffix("[30]\n1 of 2\n"), "\(second.text)")
    let heavier = Self.stock.replacingOccurrences(of: "weight &gt; $weight", with: "weight &gt;= $weight")
    try package.write(heavier, to: "Sources/Warehouse/Stock.xcdatamodeld/Stock.xcdatamodel/contents")
    let outdated = try package.swift(generate + ["--check"])
    #expect(outdated.status != 0 && outdated.text.contains("outdated: StockModelClasses.swift"), "\(outdated.text)")
  }

  // MARK: The package

  private static let library = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path

  private static let manifest = """
    // swift-tools-version: 6.2
    import PackageDescription

    let holdfast: Target.Dependency = .product(name: "Holdfast", package: "holdfast")
    let package = Package(
      name: "Yard",
      platforms: [.macOS(.v15)],
      dependencies: [.package(name: "holdfast", path: "\(library)")],
      targets: [
        .target(name: "Warehouse", dependencies: [holdfast]), .target(name: "CSVStore"), .target(name: "TestSupport"),
        .executableTarget(
          name: "DogWalk",
          dependencies: [
            "Warehouse", "CSVStore", "TestSupport", holdfast, .product(name: "HoldfastMemoryStore", package: "holdfast"),
          ],
          plugins: [.plugin(name: "GenerateClassesInBuild", package: "holdfast")]),
      ],
      swiftLanguageModes: [.v6])
    """

  private static let stock = """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" sourceLanguage="Swift">
      <entity name="Crate" representedClassName="Crate">
        <attribute name="weight" attributeType="Integer 32" defaultValueString="0" usesScalarValueType="YES"/>
      </entity>
      <fetchRequest name="heavy" entity="Crate" predicateString="weight &gt; $weight"/>
    </model>
    """

  private static func walks(_ more: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" sourceLanguage="Swift">
      <entity name="Walk" representedClassName="Walk">
        <attribute name="minutes" attributeType="Integer 16" defaultValueString="0" usesScalarValueType="YES"/>
      </entity>
      \(more)
    </model>
    """
  }

  private static let program = """
    import Holdfast
    import HoldfastMemoryStore
    import Warehouse

    let stock = try PersistentContainer(declaredBy: StockModelClasses.classes, store: .memory()).newContext()
    for weight in [3, 30] as [Int32] { _ = Crate(context: stock, weight: weight) }
    print(try stock.fetch(StockModelClasses.heavy(weight: 10)).map(\\.weight))
    let walks = try PersistentContainer(declaredBy: WalksModelClasses.classes, store: .memory()).newContext()
    _ = Walk(context: walks, minutes: 40)
    print(try walks.count(for: Walk.fetchRequest()), "of", WalksModelClasses.classes.count)

    """
}

/// A folder with a package. Deleting the object deletes the folder.
private final class PackageFolder {
  private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-plugins-\(UUID().uuidString)")

  init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

  deinit { try? FileManager.default.removeItem(at: folder) }

  /// Writes a file, and creates the folders of its path.
  func write(_ text: String, to path: String) throws {
    let file = folder.appendingPathComponent(path)
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: file)
  }

  /// The names in a folder, sorted. Empty if the folder doesn't exist.
  func names(in path: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent(path).path)) ?? []).sorted()
  }

  /// Runs a command of `swift` in the package. The text is its output and errors; the lines of a program that it runs come last.
  ///
  /// Dependencies come from SwiftPM's cache, which the build of this package has filled.
  func swift(_ arguments: [String]) throws -> (text: String, status: Int32) {
    let process = Process(), errors = folder.appendingPathComponent("errors.txt"), output = folder.appendingPathComponent("output.txt")
    for file in [errors, output] { try Data().write(to: file) }
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["swift"] + arguments
    process.currentDirectoryURL = folder
    // With these, the library's manifest has no plugins, or its tests' settings.
    process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HOLDFAST_") }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = try FileHandle(forWritingTo: errors)
    try process.run()
    process.waitUntilExit()
    let texts = try [errors, output].map { try String(contentsOf: $0, encoding: .utf8) }
    return (texts.joined(separator: "\n"), process.terminationStatus)
  }
}
