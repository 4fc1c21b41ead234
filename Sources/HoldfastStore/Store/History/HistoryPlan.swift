/// What the history of a store keeps of each entity.
///
/// For stores that keep one. Sets of properties are sets of bits, whose order is that of Core Data.
public final class HistoryPlan: Sendable {
  /// What it keeps of one entity.
  public struct Entity: Sendable {
    /// The names of the properties in the order of their bits: inherited ones first, each by name.
    public var properties: [String] = []
    /// The bit of each slot.
    public var slotBits: [Int] = []
    /// The bit of each relationship, by its index.
    public var relationshipBits: [Int] = []
    /// The slots whose values are kept when an object is deleted, in the order of the columns.
    public var preserved: [SlotIndex] = []
    /// Whether the values before and after each change are kept.
    public var keepsValues = false

    /// The names and types of the values that are kept when an object of the entity is deleted.
    public func preservedNames(_ entity: ManagedObjectModel.Entity) -> [String] {
      preserved.map { "\(entity.slots[$0].name) \(entity.layout.columns[$0])" }
    }

    var byteCount: Int { (properties.count + 7) / 8 }

    /// Core Data's encoding of a set of properties: one bit for each, the most significant bit of a byte first.
    public func bytes(_ bits: Set<Int>) -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: byteCount)
      for bit in bits { bytes[bit / 8] |= 0x80 >> UInt8(bit % 8) }
      return bytes
    }

    /// The names of the properties in an encoded set; nil if the set is of another model.
    public func names(_ bytes: [UInt8]) -> [String]? {
      if bytes.count != byteCount { return nil }
      return properties.indices.filter { bytes[$0 / 8] & 0x80 >> UInt8($0 % 8) != 0 }.map { properties[$0] }
    }
  }

  /// The entities, by index.
  public let entities: [Entity]
  /// The largest number of preserved values.
  public let tombstoneCount: Int
  /// Whether the values of any entity are kept.
  public let keepsValues: Bool

  /// Creates the plan of a model.
  ///
  /// - Parameters:
  ///   - model: The model.
  ///   - missing: The entities whose objects the store can't contain. Defaults to none.
  public init(_ model: ManagedObjectModel, missing: [EntityIndex] = []) {
    var entities: [Entity] = []
    for entity in model.entities {
      let above = entity.superentityIndex.map { entities[$0.rawValue] }
      entities.append(HistoryPlan.plan(entity, above, model))
    }
    self.entities = entities
    let kept = missing.isEmpty ? entities : model.entityIndexes.filter { !missing.contains($0) }.map { entities[$0.rawValue] }
    tombstoneCount = kept.map(\.preserved.count).max() ?? 0
    keepsValues = kept.contains(where: \.keepsValues)
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
