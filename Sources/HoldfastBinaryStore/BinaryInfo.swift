import HoldfastAtomicStore
import HoldfastPropertyList
import HoldfastStore

/// The store information except for UUID and generation, as a binary property list. It includes the entities, relationships and
/// constraints that sections refer to by number.
struct BinaryInfo {
  var header: StoreFileHeader
  /// The names of entities by number.
  var entities: [String]
  /// The entity and name of each relationship, by number.
  var relationships: [[String]]
  /// The entity and properties of each constraint, by number.
  var constraints: [[String]]
  /// The entity and name of each relationship with sections of inverse links, by number.
  var inverses: [[String]]

  /// On disk: do not change.
  private enum Key {
    static let lineage = "lineage"
    static let hashes = "hashes"
    static let layouts = "layouts"
    static let nextKeys = "nextKeys"
    static let entities = "entities"
    static let relationships = "relationships"
    static let constraints = "constraints"
    static let metadata = "metadata"
    static let inverses = "inverses"
  }

  /// The limits for reading.
  static let limits = PropertyListLimits()

  // MARK: Writing

  init(_ image: StoreImage) {
    let model = image.model
    header = image.header
    entities = model.entities.map(\.name)
    relationships = BinaryInfo.listed(model).map { [model.entities[$0.entityIndex].name, $0.name] }
    inverses = BinaryInfo.inverted(model).map { [model.entities[$0.entityIndex].name, $0.name] }
    constraints = image.generation.schema.uniqueConstraints.map { [model.entities[$0.entity].name] + $0.names }
  }

  /// The relationships that have sections: those whose links aren't stored in rows, and ordered ones.
  static func listed(_ model: ManagedObjectModel) -> [ManagedObjectModel.Relationship] {
    model.entities.flatMap(\.ownRelationships).filter { $0.isToMany && ($0.storesLinks || $0.isOrdered) }
  }

  /// The relationships that have sections of inverse links: their links are stored at the other end, and they have no lists.
  static func inverted(_ model: ManagedObjectModel) -> [ManagedObjectModel.Relationship] {
    model.entities.flatMap(\.ownRelationships).filter { $0.isToMany && !$0.storesLinks && !$0.isOrdered }
  }

  /// The position of each relationship in a list, by entity and name.
  static func numbers(_ list: [ManagedObjectModel.Relationship], _ model: ManagedObjectModel) -> [[String]: Int] {
    Dictionary(
      list.enumerated().map { ([model.entities[$0.element.entityIndex].name, $0.element.name], $0.offset) },
      uniquingKeysWith: { first, _ in first })
  }

  /// The property list.
  ///
  /// - Throws: ``StoreError`` with code `unstorableValue` if the metadata exceeds the limits for reading.
  func bytes() throws -> [UInt8] {
    func names(_ list: [String]) -> PropertyList { .array(list.map { .string($0) }) }
    var metadata = StoreMetadataList([:])
    for case .objectID(let id) in header.metadata.values where id.isTemporaryID {
      throw StoreError(
        .unstorableValue, operation: "write the store", reason: "The metadata refers to an object that was never saved. Save it first.")
    }
    try metadata.setUserInfo(header.metadata)
    var entries: [String: PropertyList] = [
      Key.lineage: .data(header.lineage), Key.hashes: .dictionary(header.versionHashes.mapValues { .data($0) }),
      Key.layouts: .dictionary((header.layoutHashes ?? [:]).mapValues { .data($0) }),
      Key.nextKeys: .dictionary(header.nextKeys.mapValues { .integer($0.rawValue) }),
      Key.entities: names(entities), Key.relationships: .array(relationships.map(names)),
      Key.constraints: .array(constraints.map(names)), Key.metadata: .dictionary(metadata.entries),
    ]
    if !inverses.isEmpty { entries[Key.inverses] = .array(inverses.map(names)) }
    let bytes = PropertyList.dictionary(entries).binary
    do {
      _ = try BinaryInfo(bytes, storeUUID: header.storeUUID, generation: header.generation)
    } catch {
      throw StoreError(
        .unstorableValue, operation: "write the store", reason: "The metadata is too large. Store less.", cause: error)
    }
    return bytes
  }

  // MARK: Reading

  init(_ bytes: [UInt8], storeUUID: String, generation: Int64) throws(PropertyListError) {
    let list = try PropertyList(binary: bytes, limits: BinaryInfo.limits)
    guard let hashes = list[Key.hashes]?.dictionary, let layouts = list[Key.layouts]?.dictionary,
      let keys = list[Key.nextKeys]?.dictionary, let metadata = list[Key.metadata]?.dictionary,
      let entities = BinaryInfo.names(list[Key.entities]), let relationships = list[Key.relationships]?.array?.map(BinaryInfo.names),
      let constraints = list[Key.constraints]?.array?.map(BinaryInfo.names)
    else { throw PropertyListError(.notAPropertyList, "An entry of the store information is missing.") }
    // Files of version 0.1 have none.
    let inverses = list[Key.inverses].map { $0.array?.map(BinaryInfo.names) } ?? []
    guard let inverses else { throw PropertyListError(.notAPropertyList, "The list of inverses is invalid.") }
    header = StoreFileHeader(
      storeUUID: storeUUID, generation: generation, versionHashes: hashes.compactMapValues(\.data),
      layoutHashes: layouts.compactMapValues(\.data), nextKeys: keys.compactMapValues { $0.integer.map { ObjectKey($0) } },
      metadata: StoreMetadataList(metadata).userInfo)
    header.lineage = list[Key.lineage]?.data ?? []
    self.entities = entities
    self.relationships = relationships.map { $0 ?? [] }
    self.constraints = constraints.map { $0 ?? [] }
    self.inverses = inverses.map { $0 ?? [] }
  }

  private static func names(_ list: PropertyList?) -> [String]? { list?.array?.map { $0.string ?? "" } }
}

/// Maps the numbers in a file's sections to a model.
struct BinarySubjects: Sendable {
  /// The model's entity for each number; nil if the model doesn't have it.
  let entities: [EntityIndex?]
  let relationships: [ManagedObjectModel.Relationship?]
  /// The relationships with sections of inverse links, by number.
  let inverses: [ManagedObjectModel.Relationship?]
  /// For each relationship number of the file, the number in a new file.
  private let relationshipNumbers: [Int?]
  /// The same for the numbers of inverses.
  private let inverseNumbers: [Int?]
  /// For each of the schema's constraints, its number in the file; nil if the file has no index for it.
  let constraintNumbers: [Int?]

  /// - Throws: ``StoreError`` with code `damaged` if two numbers identify the same entity, relationship or constraint.
  init(_ info: BinaryInfo, _ schema: TableSchema, _ errors: BinaryErrors) throws {
    let model = schema.model
    guard Set(info.entities).count == info.entities.count, Set(info.relationships).count == info.relationships.count,
      Set(info.constraints).count == info.constraints.count, Set(info.inverses).count == info.inverses.count
    else { throw errors.damaged("The file lists an entity, a relationship or a constraint twice.") }
    entities = info.entities.map { model.entity(named: $0)?.index }
    (relationshipNumbers, relationships) = BinarySubjects.find(info.relationships, in: BinaryInfo.listed(model), model)
    (inverseNumbers, inverses) = BinarySubjects.find(info.inverses, in: BinaryInfo.inverted(model), model)
    constraintNumbers = schema.uniqueConstraints.map { constraint in
      info.constraints.firstIndex(of: [model.entities[constraint.entity].name] + constraint.names)
    }
  }

  /// Finds relationships by entity and name: their positions in a list of the model, and themselves.
  private static func find(
    _ names: [[String]], in list: [ManagedObjectModel.Relationship], _ model: ManagedObjectModel
  ) -> ([Int?], [ManagedObjectModel.Relationship?]) {
    let known = BinaryInfo.numbers(list, model), numbers = names.map { known[$0] }
    return (numbers, numbers.map { $0.map { list[$0] } })
  }

  /// Whether a section refers to something in the model.
  func knows(_ entry: SectionEntry) -> Bool {
    switch entry.kind {
    case .info, .model, .history: true
    case .rows, .links, .order, .unique, .inverse: number(of: entry) != nil
    }
  }

  /// The section's subject in a new file; nil if a new file has none.
  func number(of entry: SectionEntry) -> Int? {
    switch entry.kind {
    case .info, .model, .history: nil
    case .rows: entry.subject < entities.count ? entities[entry.subject]?.rawValue : nil
    case .links, .order: entry.subject < relationshipNumbers.count ? relationshipNumbers[entry.subject] : nil
    case .unique: constraintNumbers.firstIndex(of: entry.subject)
    case .inverse: entry.subject < inverseNumbers.count ? inverseNumbers[entry.subject] : nil
    }
  }
}
