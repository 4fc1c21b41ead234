import Foundation
import HoldfastModelFile
import HoldfastPropertyList
import HoldfastStore
import Testing

/// The version hashes of every model that Xcode or Core Data compiled equal those that Core Data stored.
@Suite(.enabled(if: Corpus.root != nil, "\(Corpus.isMissing)")) struct CompiledCorpusTests {
  private static func hashes(_ model: ManagedObjectModel) -> [String: [UInt8]] {
    Dictionary(uniqueKeysWithValues: model.entities.map { ($0.name, $0.versionHash) })
  }

  @Test(arguments: Corpus.compiledBundles) func everyVersionOfABundleLoadsWithTheHashesThatTheBundleNames(_ folder: String) throws {
    let bundle = try CompiledModelBundle(contentsOf: Corpus.path(folder))
    #expect(bundle.versionNames.contains(bundle.currentVersionName) && bundle.versionNames.count == 3)
    for name in bundle.versionNames {
      #expect(Self.hashes(try bundle.version(name).model) == bundle.versionHashes[name], "\(name)")
    }
    #expect(try CompiledModel(contentsOf: Corpus.path(folder)).model == bundle.version().model)
  }

  @Test(arguments: Corpus.compiled) func everyCompiledFileLoads(_ file: String) throws {
    let compiled = try CompiledModel(contentsOf: Corpus.path(file))
    #expect(!compiled.model.entities.isEmpty)
    #expect(compiled.notes == [], "\(file)")
  }

  @Test(arguments: Corpus.stores) func everyModelCacheHasTheHashesOfItsStore(_ file: String) throws {
    let store = try Corpus.store(file)
    guard let cache = store.cache else {
      // Framework versions up to 519 stored none.
      #expect(try #require(store.metadata["NSPersistenceFrameworkVersion"]?.integer) <= 519)
      return
    }
    let compiled = try CompiledModel(modelCache: cache, path: file)
    let expected = try #require(store.metadata["NSStoreModelVersionHashes"]?.dictionary).compactMapValues(\.data)
    let found = Self.hashes(compiled.model)
    #expect(Set(found.keys) == Set(expected.keys))
    for (name, hash) in expected { #expect(found[name] == hash, "\(name)") }
    if let digest = store.metadata["NSStoreModelVersionHashesDigest"]?.string { #expect(compiled.model.versionDigest == digest) }
    for note in compiled.notes { print("NOTE \(file): \(note)") }
  }
}
