import HoldfastStore
import Synchronization

/// What the history keeps of each entity.
final class HistoryPlan: Sendable {
  struct Entity: Sendable {
    /// The names of the properties in the order of their bits: inherited ones first, each by name.
    var properties: [String] = []
    /// The bit of each slot.
    var slotBits: [Int] = []
    /// The bit of each relationship, by its index.
    var relationshipBits: [Int] = []
    /// The slots whose values are kept when an object is deleted, in the order of the columns.
    var preserved: [SlotIndex] = []
    /// Whether the values before and after each change are kept.
    var keepsValues = false

    var byteCount: Int { (properties.count + 7) / 8 }

    /// Core Data's encoding of a set of properties: the most significant bit first.
    func bytes(_ bits: Set<Int>) -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: byteCount)
      for bit in bits { bytes[bit / 8] |= 0x80 >> UInt8(bit % 8) }
      return bytes
    }

    /// The names of the properties in an encoded set; nil if the set is of another model.
    func names(_ bytes: [UInt8]) -> [String]? {
      if bytes.count != byteCount { return nil }
      return properties.indices.filter { bytes[$0 / 8] & 0x80 >> UInt8($0 % 8) != 0 }.map { properties[$0] }
    }
  }

  let entities: [Entity]
  /// The largest number of preserved values.
  let tombstoneCount: Int
  /// Whether the values of any entity are kept.
  let keepsValues: Bool

  init(_ model: ManagedObjectModel) {
    var entities: [Entity] = []
    for entity in model.entities {
      let above = entity.superentityIndex.map { entities[$0.rawValue] }
      entities.append(HistoryPlan.plan(entity, above, model))
    }
    self.entities = entities
    tombstoneCount = entities.map(\.preserved.count).max() ?? 0
    keepsValues = entities.contains(where: \.keepsValues)
  }

  private static func plan(_ entity: ManagedObjectModel.Entity, _ above: Entity?, _ model: ManagedObjectModel) -> Entity {
    var plan = Entity()
    plan.properties = above?.properties ?? []
    // The elements of a composite attribute are one property.
    func property(_ name: String) -> String { String(name.prefix { $0 != "." }) }
    let own = Set(entity.slots.map { property($0.name) } + entity.relationships.map(\.name)).subtracting(plan.properties)
    plan.properties += own.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
    let bits = Dictionary(plan.properties.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
    plan.slotBits = entity.slots.map { bits[property($0.name)] ?? 0 }
    plan.relationshipBits = entity.relationships.map { bits[$0.name] ?? 0 }
    let preserved = entity.attributes.filter { attribute in
      model.preservesOnDeletion(attribute.name, of: entity) && above?.preserved.contains(attribute.slot) != true
    }
    plan.preserved = (above?.preserved ?? []) + preserved.map(\.slot)
    plan.keepsValues = model.keepsHistoryValues(of: entity)
    return plan
  }
}

extension ManagedObjectModel {
  fileprivate func preservesOnDeletion(_ name: String, of entity: Entity) -> Bool {
    if let own = entity.declaration.attributes.first(where: { $0.name == name || name.hasPrefix($0.name + ".") }) {
      return own.preservesValueInHistoryOnDeletion
    }
    return entity.superentityIndex.map { preservesOnDeletion(name, of: entities[$0]) } ?? false
  }
}

/// Whether the file of an open store has a history. It may get one at any time, from another process.
final class HistoryState: Sendable {
  private struct Known {
    var schemaVersion: Int64?
    var isKept = false
  }

  private let model: ManagedObjectModel
  private let madePlan = Mutex<HistoryPlan?>(nil)
  /// Used with the writer.
  private let known = Mutex(Known())

  init(_ model: ManagedObjectModel) { self.model = model }

  /// Made at the first use, because most files have no history.
  var plan: HistoryPlan {
    madePlan.withLock { made in
      if let made { return made }
      let plan = HistoryPlan(model)
      made = plan
      return plan
    }
  }

  /// Whether a save writes history. Call it in the save's transaction.
  func isKept(_ writer: SQLiteConnection) throws -> Bool {
    let version = try writer.int64("PRAGMA schema_version")
    return try known.withLock { known in
      if known.schemaVersion == version { return known.isKept }
      known = Known(schemaVersion: version, isKept: try HistoryTables.exist(writer))
      if known.isKept { try complete(writer) }
      return known.isKept
    }
  }

  /// Adds the columns for preserved values that the tables of an earlier model lack.
  private func complete(_ writer: SQLiteConnection) throws {
    let count = try HistoryTables.tombstoneCount(writer)
    for index in count..<max(plan.tombstoneCount, count) {
      try writer.runScript("ALTER TABLE ACHANGE ADD COLUMN ZTOMBSTONE\(index) BLOB")
    }
    if try plan.keepsValues && !HistoryTables.hasValues(writer) {
      try writer.runScript("CREATE TABLE \(HistoryTables.values) (Z_PK INTEGER PRIMARY KEY, ZFORMER BLOB, ZNEW BLOB, ZLINKS BLOB)")
    }
  }
}
