public import HoldfastStore

/// What a migration would do to a store: the objects of each entity, and what would be lost.
///
/// ```swift
/// if let preview = try PersistentStoreCoordinator.previewMigration(of: .sqlite(at: path), to: model) {
///   print(preview)
/// }
/// ```
///
/// Its description is a text for people:
///
/// ```text
/// Ant: new
/// Hound, formerly Dog: 1200 objects
/// Walk: 35000 objects, unchanged
/// Lost: Dog.colour of 800 objects
/// Lost: Mouse, 3 objects
/// ```
public struct MigrationPreview: Sendable {
  /// The objects of one entity of the new model. Abstract entities aren't listed.
  public struct Entity: Sendable, Hashable {
    /// The entity's name in the new model.
    public let name: String
    /// The name in the former model; nil for a new entity.
    public let formerName: String?
    /// The number of objects that become objects of the entity.
    public let objectCount: Int
    /// What happens to the objects.
    public let kind: EntityMapping.Kind
  }

  /// What the new model has no place for.
  public struct Loss: Sendable, Hashable {
    /// The entity or property of the former model: "Mouse", "Dog.colour".
    public let path: String
    /// The number of objects that are removed, or that have a value or destinations.
    public let objectCount: Int
  }

  /// How the objects change.
  public let mapping: MappingModel
  /// The entities of the new model, in its order.
  public let entities: [Entity]
  /// What would be lost, in the order of the former model. Empty if nothing is, for example because no object has a value.
  public let losses: [Loss]

  /// The number of objects that remain.
  public var objectCount: Int { entities.reduce(0) { $0 + $1.objectCount } }

  /// The number of objects whose rows are written again. In SQLite, only tables of changed entities are; other stores write all objects.
  public var changedObjectCount: Int { entities.reduce(0) { $0 + ($1.kind == .transform ? $1.objectCount : 0) } }
}

extension MigrationPreview: CustomStringConvertible {
  /// One line for each entity, and one for each loss.
  public var description: String {
    func objects(_ count: Int) -> String { "\(count) \(count == 1 ? "object" : "objects")" }
    let lines = entities.map { entity in
      guard let formerName = entity.formerName else { return "\(entity.name): new" }
      let name = formerName == entity.name ? entity.name : "\(entity.name), formerly \(formerName)"
      return "\(name): \(objects(entity.objectCount))" + (entity.kind == .copy ? ", unchanged" : "")
    }
    return
      (lines
      + losses.map { "Lost: \($0.path)\($0.path.contains(".") ? " of" : ",") \(objects($0.objectCount))" })
      .joined(separator: "\n")
  }
}

extension PersistentStoreCoordinator {
  /// What a migration to a model would do to a store. Changes no data; opening the store may move its log into the file.
  ///
  /// Counts the store's objects with one request for each entity, and one for each removed property.
  ///
  /// - Parameters:
  ///   - description: A store that isn't open.
  ///   - model: The new model.
  /// - Returns: Nil if the store has that version of the model.
  /// - Throws: The errors of ``migratePersistentStore(_:to:)``: for example, those of models that can't be mapped.
  public static func previewMigration(of description: StoreDescription, to model: ManagedObjectModel) throws -> MigrationPreview? {
    guard let mapping = try inferredMapping(for: description, to: model) else { return nil }
    return try MigrationPreview(of: description, mapping)
  }
}

extension MappingModel {
  /// Whether the source has an entity, attribute, relationship or order that the destination hasn't, so that a migration may remove data.
  public var mayLoseData: Bool {
    if !removedEntities.isEmpty { return true }
    return entityMappings.contains { entity in
      guard let source = entity.source else { return false }
      return !MigrationPreview.lost(self.source.entities[source], entity, self).isEmpty
    }
  }
}

extension MigrationPreview {
  /// Counts the objects of a store that isn't open.
  init(of description: StoreDescription, _ mapping: MappingModel) throws {
    let coordinator = try PersistentStoreCoordinator(
      model: mapping.source, store: description.with(configuration: nil).migrating(automatically: false))
    defer { try? coordinator.close() }
    try self.init(mapping, ManagedObjectContext(coordinator: coordinator, classes: []))
  }

  private init(_ mapping: MappingModel, _ context: ManagedObjectContext) throws {
    func count(_ index: EntityIndex, where condition: QueryExpression? = nil) throws -> Int {
      let entity = mapping.source.entities[index]
      // Subentities are counted by themselves.
      let below = try entity.familyIndexes.dropFirst().filter { mapping.source.entities[$0].superentityIndex == index }.map { child in
        try Self.count(mapping.source.entities[child], condition, context)
      }
      return try Self.count(entity, condition, context) - below.reduce(0, +)
    }
    self.mapping = mapping
    entities = try mapping.entityMappings.filter { !mapping.destination.entities[$0.destination].isAbstract }.map { entity in
      Entity(
        name: mapping.destination.entities[entity.destination].name, formerName: entity.source.map { mapping.source.entities[$0].name },
        objectCount: try entity.source.map { try count($0) } ?? 0, kind: entity.kind)
    }
    var losses: [Loss] = []
    for entity in mapping.source.entities where !entity.isAbstract {
      guard let destination = mapping.destination(of: entity.index) else {
        losses.append(Loss(path: entity.name, objectCount: try count(entity.index)))
        continue
      }
      for (name, condition) in Self.lost(entity, mapping.mapping(of: destination), mapping) {
        losses.append(Loss(path: "\(entity.name).\(name)", objectCount: try count(entity.index, where: condition)))
      }
    }
    self.losses = losses.filter { $0.objectCount > 0 }
  }

  private static func count(
    _ entity: ManagedObjectModel.Entity, _ condition: QueryExpression?, _ context: ManagedObjectContext
  ) throws -> Int {
    try context.count(for: FetchRequest<ManagedObject>(entityName: entity.name, where: condition.map { FetchPredicate($0) }))
  }

  /// The properties that the new model has no place for, and the condition that an object has a value.
  fileprivate static func lost(
    _ entity: ManagedObjectModel.Entity, _ target: EntityMapping, _ mapping: MappingModel
  ) -> [(name: String, condition: QueryExpression)] {
    let kept = Set(target.values.compactMap(\.source))
    var lost: [(String, QueryExpression)] = entity.attributes.filter { !kept.contains($0.slot) && $0.derivation == nil }.map {
      ($0.name, .comparison(.property(PropertyPath($0.name)), .notEqualTo, .constant(.null), []))
    }
    for relationship in entity.relationships {
      // The links are also lost if only the inverse is kept: then it is read from the other side.
      let isKept = mapping.entityMappings.contains { other in
        other.links.contains { link in link.map { mapping.keeps(relationship, $0) } ?? false }
      }
      let path = PropertyPath(relationship.name)
      if isKept {
        if relationship.isOrdered && !mapping.keepsOrder(of: relationship) {
          lost.append(("\(relationship.name) (order)", .comparison(.count(path), .greaterThan, .constant(.int64(1)), [])))
        }
        continue
      }
      lost.append(
        (
          relationship.name,
          relationship.isToMany
            ? .comparison(.count(path), .greaterThan, .constant(.int64(0)), [])
            : .comparison(.property(path), .notEqualTo, .constant(.null), [])
        ))
    }
    return lost
  }
}

extension MappingModel {
  /// Whether a relationship of the destination has the order of one of the source.
  fileprivate func keepsOrder(of relationship: ManagedObjectModel.Relationship) -> Bool {
    destination.entities.flatMap(\.ownRelationships).contains { new in
      guard new.isOrdered, let former = link(new).flatMap({ ordering($0) }) else { return false }
      return former.entityIndex == relationship.entityIndex && former.index == relationship.index
    }
  }

  /// Whether a link mapping reads a relationship or its inverse.
  fileprivate func keeps(_ relationship: ManagedObjectModel.Relationship, _ link: LinkMapping) -> Bool {
    let read = self.relationship(link)
    if read.entityIndex == relationship.entityIndex && read.index == relationship.index { return true }
    return read.hasInverse && read.destinationIndex == relationship.entityIndex && read.inverseIndex == relationship.index
  }
}
