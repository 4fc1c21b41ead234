package import HoldfastAtomicStore
package import HoldfastStore

// The fuzzers compile the simulated file system alone.
#if canImport(SimulatedFiles)
  import SimulatedFiles
#else
  import HoldfastStoreConformance
#endif

/// What must hold of any bytes that are opened as a whole-file store.
///
/// Fuzzers check it of bytes that they make up; tests check it of the files that the fuzzers start from.
package struct WholeFileProperty: Sendable {
  package let model: ManagedObjectModel
  private let description: @Sendable (String, WholeFileOptions) -> StoreDescription
  private let content: @Sendable ([UInt8]) -> ArraySlice<UInt8>?

  /// - Parameters:
  ///   - model: the model with which the files are opened.
  ///   - description: describes the store of a path.
  ///   - content: the range of a file that two saves of the same objects write equally.
  package init(
    model: ManagedObjectModel, description: @escaping @Sendable (String, WholeFileOptions) -> StoreDescription,
    content: @escaping @Sendable ([UInt8]) -> ArraySlice<UInt8>?
  ) {
    self.model = model
    self.description = description
    self.content = content
  }

  /// What a store does with bytes.
  package enum Outcome {
    /// It opens, saves and opens again with equal content.
    case accepted
    /// It throws a `StoreError` with a specific code.
    case refused
    /// It breaks the rule of the sentence.
    case violation(String)
  }

  /// Opens, saves and opens the bytes again. Every call must be fast and use little memory, too.
  ///
  /// - Parameter readFirst: reads the store before it is saved.
  package func outcome(_ bytes: [UInt8], readFirst: (StoreDescription) throws -> Void = { _ in }) -> Outcome {
    let disk = SimulatedFileSystem()
    disk.setContents(of: "store", bytes)
    var options = WholeFileOptions()
    options.file.fileSystem = disk
    // Digests are seldom right by chance.
    options.allowsUnverified = true
    let unverified = description("/store", options)
    _ = try? unverified.administration.perform(MetadataRequest())
    _ = try? unverified.administration.perform(StoredModelRequest())
    do {
      try readFirst(unverified)
      let (first, metadata) = try save(unverified, disk)
      options.allowsUnverified = false
      let (second, metadataAgain) = try save(description("/store", options), disk)
      if content(first) != content(second) { return .violation("Saving the file again changed its content.") }
      if !isEqual(metadata, metadataAgain) { return .violation("The metadata changed when the file was saved again.") }
      return .accepted
    } catch let error as StoreError {
      return error.code == .general ? .violation("The error has no specific code: \(error)") : .refused
    } catch {
      return .violation("The error isn't a StoreError: \(error)")
    }
  }

  /// Opens the store, saves it, closes it, and returns its bytes and metadata.
  private func save(_ description: StoreDescription, _ disk: SimulatedFileSystem) throws -> ([UInt8], [String: StoreValue]) {
    let store = description.makeStore()
    do {
      let metadata = try store.open(model: model, host: .none).userInfo
      try store.setMetadata(metadata)
      try store.close()
      return (disk.contents(of: "store") ?? [], metadata)
    } catch {
      try? store.close()
      throw error
    }
  }

  /// Whether two dictionaries are equal; NaN equals NaN.
  private func isEqual(_ first: [String: StoreValue], _ second: [String: StoreValue]) -> Bool {
    first.keys == second.keys && first.allSatisfy { key, value in second[key].map { $0 == value || "\($0)" == "\(value)" } == true }
  }

  /// A model with every type of value and every kind of relationship.
  ///
  /// - Parameter isUnique: whether entity A has uniqueness constraints.
  package static func model(isUnique: Bool = false) -> ManagedObjectModel {
    do {
      let types = AttributeType.storedCases.filter { $0 != .transformable }
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "A",
          attributes: types.map {
            AttributeDescription("a\($0.rawValue)", $0, isOptional: true, allowsExternalBinaryDataStorage: $0 == .binaryData)
          },
          relationships: [
            .toOne("one", to: "A", inverse: "other"), .toOne("other", to: "A", inverse: "one"),
            .toMany("list", to: "B", inverse: "owner", isOrdered: true), .toMany("set", to: "B", inverse: "holder"),
            .toMany("many", to: "C", inverse: "lots"), .toMany("same", to: "A", inverse: "same"), .toMany("own", to: "C", inverse: nil),
          ], uniquenessConstraints: isUnique ? [["ainteger64"], ["astring", "auuid"]] : []),
        EntityDescription("B", relationships: [.toOne("owner", to: "A", inverse: "list"), .toOne("holder", to: "A", inverse: "set")]),
        EntityDescription("C", isAbstract: true, relationships: [.toMany("lots", to: "A", inverse: "many", isOrdered: true)]),
        EntityDescription("D", superentity: "C"),
      ])
    } catch { fatalError("\(error)") }
  }
}
