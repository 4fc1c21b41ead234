import Foundation
import TestSupport
import Testing

/// The modules that each target of ours may depend on. Arrows point down only: no store knows the stack or a sibling,
/// the stack knows no store and no C library, and a package that uses us resolves swift-log alone.
private let allowed: [String: Set<String>] = [
  "CHoldfastSQLite": [],
  "CHoldfastYajl": [],
  "CHoldfastLibXML2": [],
  "CHoldfastZlib": [],
  "CHoldfastPOSIX": [],
  "HoldfastSupport": [],
  "HoldfastStore": ["HoldfastSupport", "Logging"],
  "HoldfastPropertyList": ["HoldfastStore"],
  "HoldfastRowStore": ["HoldfastStore"],
  "HoldfastStoreWrappers": ["HoldfastRowStore", "HoldfastStore", "HoldfastSupport", "Tracing"],
  "HoldfastEncryption": ["HoldfastFiles", "HoldfastStore", "Crypto"],
  "HoldfastStoreRecording": ["Holdfast", "HoldfastFiles", "HoldfastStore"],
  "HoldfastCoreData": ["Holdfast", "HoldfastModelFile", "HoldfastPropertyList", "HoldfastSQLiteStore", "HoldfastStore"],
  "HoldfastFiles": ["HoldfastStore", "CHoldfastPOSIX"],
  "HoldfastAtomicStore": ["HoldfastFiles", "HoldfastPropertyList", "HoldfastStore", "HoldfastSupport"],
  "HoldfastMemoryStore": ["HoldfastAtomicStore", "HoldfastStore"],
  "HoldfastJSONStore": ["HoldfastAtomicStore", "HoldfastStore", "CHoldfastYajl"],
  "HoldfastXMLStore": ["HoldfastAtomicStore", "HoldfastPropertyList", "HoldfastStore", "CHoldfastLibXML2"],
  "HoldfastBinaryStore": ["HoldfastAtomicStore", "HoldfastPropertyList", "HoldfastStore"],
  "HoldfastSQLiteStore": ["HoldfastFiles", "HoldfastPropertyList", "HoldfastStore", "HoldfastSupport", "CHoldfastSQLite", "Logging"],
  "HoldfastModelCode": ["HoldfastStore"],
  "HoldfastModelFile": ["HoldfastPropertyList", "HoldfastStore", "CHoldfastPOSIX", "CHoldfastLibXML2", "CHoldfastZlib"],
  "HoldfastMacros": ["SwiftDiagnostics", "SwiftParser", "SwiftSyntax", "SwiftSyntaxBuilder", "SwiftSyntaxMacros"],
  "Holdfast": ["HoldfastMacrosPlugin", "HoldfastPropertyList", "HoldfastStore", "HoldfastSupport", "Logging"],
  "TestSupport": [
    "Holdfast", "HoldfastStore", "HoldfastAtomicStore", "HoldfastEncryption", "HoldfastStoreConformance", "HoldfastSupport",
    // Only under the thread sanitizer.
    "CThreadSanitizer",
  ],
  "CThreadSanitizer": [],
  "SQLiteTestSupport": ["CHoldfastSQLite"],
  "HoldfastTesting": ["Holdfast", "HoldfastMemoryStore", "HoldfastStore", "HoldfastStoreConformance", "Testing"],
  "HoldfastStoreConformance": ["Holdfast", "HoldfastFiles", "HoldfastRowStore", "HoldfastStore"],
]

/// What every target may import: the language's own modules and the small Foundation.
private let everywhere: Set<String> = [
  "Synchronization", "Dispatch", "FoundationEssentials", "Foundation", "Glibc", "Musl", "Android", "Darwin",
]

@Suite struct ArrowTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  @Test func theManifestDeclaresNoArrowThatIsNotAllowed() throws {
    // What the examples share is at the top of everything.
    for target in try Self.describedTargets.get()
    where ["library", "system-target"].contains(target.type) && !["CSVStore", "LogStore"].contains(target.name) {
      let known = try #require(allowed[target.name], "There is a new target \(target.name); say here what it may depend on.")
      let found = Set(target.targetDependencies).union(target.productDependencies)
      #expect(found.isSubset(of: known), "\(target.name) depends on \(found.subtracting(known).sorted()).")
    }
  }

  @Test func noSourceImportsWhatItsTargetMayNot() throws {
    for (target, modules) in allowed {
      for file in try swiftFiles(in: Self.root.appendingPathComponent("Sources/\(target)")) {
        let imported = try imports(of: file)
        let wrong = imported.subtracting(modules).subtracting(everywhere)
        #expect(wrong.isEmpty, "\(target)/\(file.lastPathComponent) imports \(wrong.sorted()).")
      }
    }
  }

  /// A benchmark that linked it would take longer to start and to look up types.
  @Test func fullFoundationIsImportedOnlyWhereThereIsNoSmallOne() throws {
    for folder in allowed.keys.map({ "Sources/\($0)" }) + ["Benchmarks/Sources"] {
      for file in try swiftFiles(in: Self.root.appendingPathComponent(folder)) {
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        for (place, line) in lines.enumerated() where line.hasSuffix("import Foundation") {
          let isLast = place > 0 && lines[place - 1].trimmingCharacters(in: .whitespaces) == "#else"
          #expect(isLast, "\(folder)/\(file.lastPathComponent) imports full Foundation.")
        }
      }
    }
  }

  /// Packages that enable no trait resolve swift-log and nothing else.
  @Test func thePackageDependsOnSwiftLogAloneWithoutTraits() throws {
    let manifest = try String(contentsOf: Self.root.appendingPathComponent("Package.swift"), encoding: .utf8)
    #expect(
      manifest.matches(of: /\.package\(url: "https:\/\/github.com\/(?:apple|swiftlang)\/([a-z-]+)"/).map(\.1) == [
        "swift-log", "swift-crypto", "swift-distributed-tracing", "swift-syntax",
      ])
    #expect(manifest.components(separatedBy: ".package(url:").count == 5)
    #expect(manifest.contains(".default(enabledTraits: [])"))
    for use in manifest.matches(of: /package: "(swift-crypto|swift-distributed-tracing|swift-syntax)"(.*)\)/) {
      #expect(use.2.hasPrefix(", condition: .when(traits: "))
    }
  }

  /// The table in CONTRIBUTING.md has the imports of each module, and folders that exist.
  @Test func thePageForContributorsHasTheImportsOfEachModule() throws {
    let page = try String(contentsOf: Self.root.appendingPathComponent("CONTRIBUTING.md"), encoding: .utf8)
    let targets = try Self.describedTargets.get()
    var found: Set<String> = []
    for line in page.split(separator: "\n") {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == 3, let target = targets.first(where: { "`\($0.name)`" == cells[0] }) else { continue }
      found.insert(target.name)
      // Without the names of packages and what is in parentheses.
      let names = cells[2].replacing(/\([^)]*\)/, with: "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
      let modules = names.filter { $0.first?.isUppercase == true && !$0.contains(" ") }
        .map { $0 == "Holdfast" || $0.hasPrefix("CHoldfast") ? $0 : "Holdfast" + $0 }
      // The macros are a dependency of the trait.
      #expect(Set(modules).symmetricDifference(target.targetDependencies).subtracting(["HoldfastMacrosPlugin"]) == [], "\(target.name)")
      for folder in cells[1].matches(of: /([A-Za-z]+)\//).map({ "Sources/\(target.name)/\($0.1)" }) {
        #expect(FileManager.default.fileExists(atPath: Self.root.appendingPathComponent(folder).path), "\(folder)")
      }
    }
    #expect(found.isSuperset(of: allowed.keys.filter { $0.hasPrefix("Holdfast") }))
  }

  @Test func onlyTestsDependOnExamples() throws {
    let targets = try Self.describedTargets.get()
    let examples = Set(targets.filter { $0.type == "executable" || ["CSVStore", "LogStore"].contains($0.name) }.map(\.name))
      .subtracting(["HoldfastGenerate"])
    #expect(examples == ["CSVStore", "LogStore"])
    for target in targets {
      if !examples.isDisjoint(with: target.targetDependencies) { #expect(target.type == "test", "\(target.name)") }
    }
  }

  /// In a program that uses a product, no target can have the name of one that the product needs.
  @Test func productsNeedOnlyTargetsWithTheNameOfTheFramework() throws {
    let described = try Self.described.get(), targets = Dictionary(uniqueKeysWithValues: described.targets.map { ($0.name, $0) })
    // Programs can't use products of tests, which SwiftPM adds.
    let products = described.products.filter { $0.targets.allSatisfy { targets[$0]?.type != "test" } }
    var needed: Set<String> = [], open = products.flatMap(\.targets)
    while let name = open.popLast() {
      if needed.insert(name).inserted { open += targets[name]?.targetDependencies ?? [] }
    }
    #expect(needed.isSuperset(of: ["Holdfast", "HoldfastStore", "HoldfastTesting", "CHoldfastSQLite"]))
    #expect(needed.filter { !$0.hasPrefix("Holdfast") && !$0.hasPrefix("CHoldfast") } == [])
  }

  // MARK: Reading

  private struct Described: Decodable {
    struct Product: Decodable, Sendable { var targets: [String] }
    struct Target: Decodable, Sendable {
      var name: String
      var type: String
      var targetDependencies: [String]
      var productDependencies: [String]

      enum CodingKeys: String, CodingKey {
        case name, type
        case targetDependencies = "target_dependencies"
        case productDependencies = "product_dependencies"
      }

      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        name = try container.decode(String.self, forKey: .name)
        type = try container.decode(String.self, forKey: .type)
        targetDependencies = try container.decodeIfPresent([String].self, forKey: .targetDependencies) ?? []
        productDependencies = try container.decodeIfPresent([String].self, forKey: .productDependencies) ?? []
      }
    }
    var products: [Product]
    var targets: [Target]
  }

  /// A build folder of its own, since the one in use is locked while tests run.
  private static let described = Result {
    let scratch = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-describe-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: scratch) }
    let outcome = try Program.run(
      "/usr/bin/env",
      ["swift", "package", "--package-path", root.path, "--scratch-path", scratch.path, "describe", "--type", "json"])
    return try JSONDecoder().decode(Described.self, from: Data(outcome.output.utf8))
  }
  private static let describedTargets = described.map(\.targets)

  private func swiftFiles(in folder: URL) throws -> [URL] {
    let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
    return (files?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
  }

  private func imports(of file: URL) throws -> Set<String> {
    let words = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap { line -> String? in
      // The name is at most the fifth word.
      let parts = line.split(separator: " ", maxSplits: 5).map(String.init)
      guard let place = parts.firstIndex(of: "import"), place <= 2, place + 1 < parts.count else { return nil }
      let isImport = parts[..<place].allSatisfy {
        $0.hasPrefix("@") || ["public", "internal", "package", "private", "fileprivate"].contains($0)
      }
      // `import struct Module.Name` names one declaration.
      let isScoped = ["class", "enum", "func", "protocol", "struct", "typealias", "var"].contains(parts[place + 1])
      let name = isScoped ? parts.dropFirst(place + 2).first : parts[place + 1]
      return isImport ? name?.split(separator: ".").first.map(String.init) : nil
    }
    return Set(words)
  }
}
