import Foundation
import TestSupport
import Testing

/// The number of files of each module that may use unsafe pointers. Lower a number when a file no longer needs one.
private let allowedCounts = [
  "HoldfastSupport": 9, "HoldfastStore": 22, "HoldfastPropertyList": 0, "HoldfastRowStore": 0, "HoldfastStoreWrappers": 0,
  "HoldfastStoreRecording": 0, "HoldfastCoreData": 0, "HoldfastEncryption": 2,
  "HoldfastFiles": 9,
  "HoldfastAtomicStore": 23, "HoldfastMemoryStore": 0,
  "HoldfastJSONStore": 10, "HoldfastXMLStore": 13, "HoldfastBinaryStore": 15, "HoldfastSQLiteStore": 18, "HoldfastModelFile": 4,
  "HoldfastModelCode": 0,
  "HoldfastGenerate": 0,
  "Holdfast": 19, "HoldfastStoreConformance": 3, "Examples": 0,
  "HoldfastMacros": 0, "HoldfastMacrosPlugin": 0, "HoldfastTesting": 0,
]

@Suite struct UnsafeCodeTests {
  private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Sources")

  @Test(arguments: allowedCounts.sorted { $0.key < $1.key }) func unsafePointersStayInFewFiles(module: String, count: Int) throws {
    let folder = Self.sources.appendingPathComponent(module)
    let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)).compactMap { $0 as? URL }
    let unsafe = files.filter { $0.pathExtension == "swift" }.filter { file in
      // A search with a regular expression takes long. Most files don't contain its parts.
      let bytes = TestFile.read(file.path)
      guard TestBytes.contain(bytes, "Unsafe") || TestBytes.contain(bytes, "Address") else { return false }
      return String(decoding: bytes, as: UTF8.self).contains(
        /Unsafe[A-Za-z]*Pointer|withUnsafe|baseAddress|unsafe(Mutable)?Address \{/)
    }
    #expect(files.count > 1, "The folder \(folder.path) has no files.")
    #expect(unsafe.count == count, "Files with unsafe pointers in \(module): \(unsafe.map(\.lastPathComponent).sorted())")
  }

  @Test func everyModuleIsCounted() throws {
    let modules = try FileManager.default.contentsOfDirectory(atPath: Self.sources.path)
    let counted = Set(modules).subtracting(["CHoldfastPOSIX", "CHoldfastLibXML2", "CHoldfastSQLite", "CHoldfastYajl", "CHoldfastZlib"])
    #expect(counted == Set(allowedCounts.keys))
  }
}
