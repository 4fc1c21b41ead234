import HoldfastBinaryStore
import HoldfastStore
import HoldfastStoreConformance

/// What must hold of any bytes that somebody gives as a binary store. The fuzzer in `Fuzzing/` checks it of bytes that it makes up, a
/// test of those that it starts from.
enum BinaryStoreProperty {
  /// What does not hold; nil when all does. It must not take long nor much memory either.
  static func violation(_ bytes: [UInt8]) -> String? {
    let disk = SimulatedFileSystem()
    disk.setContents(of: "store", bytes)
    // Digests are seldom right by chance.
    var options = BinaryStore.Options()
    options.wholeFile.allowsUnverified = true
    options.wholeFile.file.fileSystem = disk
    let description = StoreDescription.binary(at: "/store", options: options)
    _ = try? description.metadataAccess?.read()
    _ = try? description.metadataAccess?.readModel()
    do {
      try readPages(description)
      let (first, metadata) = try saved(description, disk)
      options.wholeFile.allowsUnverified = false
      let (second, again) = try saved(.binary(at: "/store", options: options), disk)
      // Saves differ in their generation, and so in their end.
      if first.dropLast(64) != second.dropLast(64) { return "What was written is written otherwise when it was read again." }
      return "\(metadata)".count == "\(again)".count ? nil : "The metadata differ when they are read again."
    } catch let error as StoreError {
      return error.code == .general ? "The error has no code of its own: \(error)" : nil
    } catch {
      return "What was thrown is no StoreError: \(error)"
    }
  }

  /// Reads what can be read page by page, where nobody has compared one with another.
  private static func readPages(_ description: StoreDescription) throws {
    let store = description.makeStore()
    defer { try? store.close() }
    _ = try store.open(model: model)
    let view = try store.beginRead(.snapshot)
    defer { view.end() }
    let sink = ValueSink()
    for entity in model.entities where !entity.isAbstract {
      try? store.fetch(FetchPlan(entity: entity.index, concreteEntities: [entity.index]), in: view, into: sink)
      try? store.rows(FaultRequest(entity: entity.index, keys: [1, 2, 3, 1 << 61]), in: view, into: sink)
    }
    var unique = FetchPlan(entity: 0, concreteEntities: [0])
    for number in [0, 1, 7] as [Int64] {
      unique.predicate = .comparison(.property("ainteger64"), .equalTo, .constant(.int64(number)), [])
      try? store.fetch(unique, in: view, into: sink)
    }
  }

  /// Opens the store, saves it, and gives its bytes.
  private static func saved(_ description: StoreDescription, _ disk: SimulatedFileSystem) throws -> ([UInt8], [String: StoreValue]) {
    let store = description.makeStore()
    let metadata = try store.open(model: model).userInfo
    defer { try? store.close() }
    try store.setMetadata(metadata)
    return (disk.contents(of: "store") ?? [], metadata)
  }

  /// Every type of value, every shape of relationship.
  static let model: ManagedObjectModel = {
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
            .toMany("list", to: "B", inverse: "owner", isOrdered: true),
            .toMany("set", to: "B", inverse: "holder"), .toMany("many", to: "C", inverse: "lots"),
            .toMany("same", to: "A", inverse: "same"),
            .toMany("own", to: "C", inverse: nil),
          ], uniquenessConstraints: [["ainteger64"], ["astring", "auuid"]]),
        EntityDescription("B", relationships: [.toOne("owner", to: "A", inverse: "list"), .toOne("holder", to: "A", inverse: "set")]),
        EntityDescription("C", isAbstract: true, relationships: [.toMany("lots", to: "A", inverse: "many", isOrdered: true)]),
        EntityDescription("D", superentity: "C"),
      ])
    } catch { fatalError("\(error)") }
  }()
}

/// Makes a value of every cell of every row.
private final class ValueSink: RowSink {
  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    for index in 0..<batch.count { _ = batch[index].values }
    return .more
  }
}
