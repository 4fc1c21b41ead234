public import HoldfastStore

/// What a file says of the store that lies in it, apart from rows.
public struct StoreFileHeader: Sendable {
  /// The store's UUID as upper-case text.
  public var storeUUID: String
  /// Counts the saves since the store was made, within ``generations``. Two files with the same UUID and
  /// generation hold the same rows and links, unless somebody copied a file and went on with both, which a save finds.
  public var generation: Int64
  /// The version hash of each entity of the model with which the file was written, by the entity's name.
  public var versionHashes: [String: [UInt8]]
  /// What else of that model decides how rows lie, by the entity's name; see
  /// ``/HoldfastStore/ManagedObjectModel/entityLayoutHashesByName``. Nil for a file of another program, which does not tell.
  public var layoutHashes: [String: [UInt8]]?
  /// The least key that was never handed out, by the name of the root entity; with ``KeySpace/store`` the same for all.
  public var nextKeys: [String: Int64]
  /// The user's own metadata.
  public var metadata: [String: StoreValue]
  /// What other programs keep with the store that is neither ours nor the user's, for a format that has room for it: it stays.
  public var kept: [String: PropertyList] = [:]

  /// The numbers that a generation may have. A store whose file bears the last one can be read, and no longer saved.
  public static let generations: ClosedRange<Int64> = 1...(1 << 62)

  /// Makes a header.
  public init(
    storeUUID: String, generation: Int64, versionHashes: [String: [UInt8]], layoutHashes: [String: [UInt8]]? = [:],
    nextKeys: [String: Int64] = [:],
    metadata: [String: StoreValue] = [:]
  ) {
    self.storeUUID = storeUUID
    self.generation = generation
    self.versionHashes = versionHashes
    self.layoutHashes = layoutHashes
    self.nextKeys = nextKeys
    self.metadata = metadata
  }

  /// The header of a file with rows of a model.
  init(
    storeUUID: String, generation: Int64, schema: TableSchema, hashes: ModelHashes, nextKeys: [Int64], metadata: [String: StoreValue],
    kept: [String: PropertyList] = [:]
  ) {
    let entities = schema.model.entities
    self.init(
      storeUUID: storeUUID, generation: generation, versionHashes: hashes.version, layoutHashes: hashes.layout,
      nextKeys: Dictionary(
        uniqueKeysWithValues: entities.lazy.filter { $0.rootIndex == $0.index }.map { ($0.name, nextKeys[schema.tableOfEntity[$0.index]]) }),
      metadata: metadata)
    self.kept = kept
  }

  /// For each table the least key that was never handed out: what the file says, and more than any key in use. In a key space of the
  /// whole store it is the same for all.
  func nextKeys(_ schema: TableSchema, largestKeys: [Int64]) -> [Int64] {
    var keys = largestKeys.map { $0 + 1 }
    for entity in schema.model.entities where entity.rootIndex == entity.index {
      let table = schema.tableOfEntity[entity.index]
      keys[table] = max(keys[table], nextKeys[entity.name] ?? 1)
    }
    return schema.keySpace == .family ? keys : Array(repeating: keys.max() ?? 1, count: keys.count)
  }

  /// Refuses a model with other entities than those with which the file was written.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `incompatibleModel`, which names the entities that differ.
  func check(_ model: ManagedObjectModel, _ path: String?) throws {
    try ModelCompatibility.check(versionHashes, layouts: layoutHashes, model, path: path)
  }
}

/// What a file says of the model that it was written with.
struct ModelHashes {
  let version: [String: [UInt8]]
  let layout: [String: [UInt8]]

  init(_ model: ManagedObjectModel) { (version, layout) = (model.entityVersionHashesByName, model.entityLayoutHashesByName) }
}
