public import HoldfastPropertyList
public import HoldfastStore

/// The description of a store in its file, apart from rows.
public struct StoreFileHeader: Sendable {
  /// The store's UUID in uppercase.
  public var storeUUID: String
  /// The number of saves since the store was created, within ``generations``.
  ///
  /// Two files with the same UUID and generation contain the same rows and links, unless copies of a file diverged. A save detects
  /// that by the ``lineage``.
  public var generation: Int64
  /// The history of the file, at most 512 bytes. A format keeps it unchanged; empty if the file has none.
  ///
  /// For each of the latest 32 open stores that saved it, the latest first: a random number of the open store, and the generation that
  /// it saved last. Both are 64-bit integers, little-endian.
  public var lineage: [UInt8] = []
  /// The version hashes of the model with which the file was written, by entity name.
  public var versionHashes: [String: [UInt8]]
  /// Hashes of the properties of that model that determine the row layout, by entity name.
  ///
  /// See ``/HoldfastStore/ManagedObjectModel/entityLayoutHashesByName``. Nil for a file of another program, which doesn't contain
  /// them.
  public var layoutHashes: [String: [UInt8]]?
  /// The next key to reserve, by name of the root entity. With ``KeySpace/store``, all entries are equal.
  public var nextKeys: [String: ObjectKey]
  /// The user's metadata.
  public var metadata: [String: StoreValue]
  /// Metadata of other programs that Holdfast preserves, if the format has room for it.
  public var kept: [String: PropertyList] = [:]

  /// The valid generation numbers. A store whose generation is the maximum can be read but no longer saved.
  public static let generations: ClosedRange<Int64> = 1...(1 << 62)

  /// Creates a header.
  public init(
    storeUUID: String, generation: Int64, versionHashes: [String: [UInt8]], layoutHashes: [String: [UInt8]]? = [:],
    nextKeys: [String: ObjectKey] = [:],
    metadata: [String: StoreValue] = [:]
  ) {
    self.storeUUID = storeUUID
    self.generation = generation
    self.versionHashes = versionHashes
    self.layoutHashes = layoutHashes
    self.nextKeys = nextKeys
    self.metadata = metadata
  }

  /// Creates the header of a file for the tables of a schema.
  init(
    storeUUID: String, generation: Int64, lineage: Lineage, schema: TableSchema, hashes: ModelHashes, nextKeys: [ObjectKey],
    metadata: [String: StoreValue], kept: [String: PropertyList] = [:]
  ) {
    let entities = schema.model.entities
    self.init(
      storeUUID: storeUUID, generation: generation, versionHashes: hashes.version, layoutHashes: hashes.layout,
      nextKeys: Dictionary(
        uniqueKeysWithValues: entities.lazy.filter { $0.rootIndex == $0.index }.map { ($0.name, nextKeys[schema.tableOfEntity[$0.index]]) }),
      metadata: metadata)
    self.lineage = lineage.bytes
    self.kept = kept
  }

  /// The next key to reserve for each table: the value in the file, or the largest key plus one if that is larger. If keys are unique in
  /// the entire store, all values are equal.
  func nextKeys(_ schema: TableSchema, largestKeys: [ObjectKey]) -> [ObjectKey] {
    var keys = largestKeys.map { $0.advanced(by: 1) }
    for entity in schema.model.entities where entity.rootIndex == entity.index {
      let table = schema.tableOfEntity[entity.index]
      keys[table] = max(keys[table], nextKeys[entity.name] ?? 1)
    }
    return schema.keySpace == .family ? keys : Array(repeating: keys.max() ?? 1, count: keys.count)
  }

  /// Throws if the entities of a model differ from those with which the file was written.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `incompatibleModel`, which names the entities that differ.
  func check(_ model: ManagedObjectModel, _ path: String?) throws {
    try ModelCompatibility.check(versionHashes, layouts: layoutHashes, model, path: path)
  }
}

/// The hashes of the model with which a file was written.
struct ModelHashes {
  let version: [String: [UInt8]]
  let layout: [String: [UInt8]]

  init(_ model: ManagedObjectModel) { (version, layout) = (model.entityVersionHashesByName, model.entityLayoutHashesByName) }
}
