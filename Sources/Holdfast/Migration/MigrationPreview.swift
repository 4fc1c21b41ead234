public import HoldfastStore

/// What a migration would do to a store: the objects of each entity, what would be lost, and what it costs.
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
/// Needs about 0.3 s, and 1.2 MB for a time
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

  /// The name of the stage with code in a plan; nil for other migrations.
  public let stage: String?
  /// How the objects change, apart from what code changes.
  public let mapping: MappingModel
  /// The entities of the new model, in its order.
  public let entities: [Entity]
  /// What would be lost, in the order of the former model. Empty if nothing is, for example because no object has a value. Code of a stage may
  /// keep it elsewhere.
  public let losses: [Loss]
  /// How long the migration takes.
  ///
  /// Estimated from the time for reading some thousand of the store's objects, so it depends on what else the machine does. The real time can be
  /// three times as long or as short, and a few milliseconds longer. In the preview of a plan, it is the measured time of the stage on a copy.
  public let estimatedDuration: Duration
  /// The free space that the migration needs for a time on the store's volume, in bytes, besides that of external files; nil if the store
  /// can't estimate it. Estimated from the size of its file, rather too large than too small.
  public let estimatedByteCount: Int64?

  /// The number of objects that remain.
  public var objectCount: Int { entities.reduce(0) { $0 + $1.objectCount } }

  /// The number of objects whose entity has other properties.
  public var changedObjectCount: Int { entities.reduce(0) { $0 + ($1.kind == .transform ? $1.objectCount : 0) } }
}

extension MigrationPreview: CustomStringConvertible {
  /// A line with the stage's name if there is one, one line for each entity, one for each loss, and one for time and space.
  public var description: String {
    func objects(_ count: Int) -> String { "\(count) \(count == 1 ? "object" : "objects")" }
    let lines = entities.map { entity in
      guard let formerName = entity.formerName else { return "\(entity.name): new" }
      let name = formerName == entity.name ? entity.name : "\(entity.name), formerly \(formerName)"
      return "\(name): \(objects(entity.objectCount))" + (entity.kind == .copy ? ", unchanged" : "")
    }
    let prefix = stage == nil ? "Lost: " : "Lost unless the code keeps it: "
    let lost = losses.map { "\(prefix)\($0.path)\($0.path.contains(".") ? " of" : ",") \(objects($0.objectCount))" }
    return ((stage.map { ["Stage \($0):"] } ?? []) + lines + lost + [cost]).joined(separator: "\n")
  }

  private var cost: String {
    let seconds = estimatedDuration / .seconds(1), megabytes = estimatedByteCount.map { max(Double($0) / 1e6, 0.1) }
    func rounded(_ number: Double) -> String { number < 10 ? "\((number * 10).rounded() / 10)" : "\(Int(number))" }
    return "Needs \(seconds < 0.1 ? "less than 0.1" : "about \(rounded(seconds))") s"
      + (megabytes.map { ", and \(rounded($0)) MB for a time" } ?? "")
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
  init(of description: StoreDescription, _ mapping: MappingModel, stage: String? = nil) throws {
    let clock = ContinuousClock(), start = clock.now
    let coordinator = try Self.coordinator(description, mapping)
    let opening: Duration, reading: Duration, counts: [Int]
    do {
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
      counts = try mapping.source.entities.map { $0.isAbstract ? 0 : try Self.count(mapping.source, $0.index, context) }
      (self.stage, self.mapping, entities) = (stage, mapping, Self.entities(mapping, counts))
      losses = try Self.losses(mapping, context)
      opening = clock.now - start
      reading = try Self.readingTime(mapping.source, counts, context)
    } catch {
      try? coordinator.close()
      throw error
    }
    // Stores estimate a migration only while they are closed.
    try coordinator.close()
    let hasEstimate = description.administration.supports(MigrationEstimateRequest.self)
    let estimate =
      hasEstimate
      ? try PersistentStoreCoordinator.perform(MigrationEstimateRequest(mapping, objectCounts: counts), description) : nil
    let isWhole = description.makeStore().capabilities.residentRows
    let all = counts.reduce(0, +), share = Double(estimate?.rewrittenObjectCount ?? all) / Double(max(all, 1))
    // Measured with a hundred thousand people: a row store reads and writes a row in three times the time for reading an object. Other stores
    // copy a row in half of that time, and their file is read and written in about the time for opening it.
    estimatedDuration = opening + reading * (isWhole ? 0.5 : 3) * share
    estimatedByteCount = estimate?.byteCount
  }

  /// What a migration of a store that isn't open would lose.
  static func losses(of description: StoreDescription, _ mapping: MappingModel) throws -> [Loss] {
    let coordinator = try coordinator(description, mapping)
    defer { try? coordinator.close() }
    return try losses(mapping, ManagedObjectContext(coordinator: coordinator, classes: []))
  }

  /// Opens a store to read its rows once. It creates and changes no file of the store.
  private static func coordinator(_ description: StoreDescription, _ mapping: MappingModel) throws -> PersistentStoreCoordinator {
    let store = description.location?.path.flatMap { description.inFileWithSmallCaches?($0) } ?? description
    return try PersistentStoreCoordinator(model: mapping.source, migrating: store.readOnly().with(configuration: nil))
  }

  /// The same preview with measured costs.
  func measured(_ duration: Duration, _ byteCount: Int64?) -> MigrationPreview {
    MigrationPreview(
      stage: stage, mapping: mapping, entities: entities, losses: losses, estimatedDuration: duration, estimatedByteCount: byteCount)
  }

  /// The time for reading all objects, from that of some thousand of each entity.
  private static func readingTime(_ model: ManagedObjectModel, _ counts: [Int], _ context: ManagedObjectContext) throws -> Duration {
    var total = Duration.zero
    for (entity, all) in zip(model.entities, counts) where all > 0 {
      var request = FetchRequest<ManagedObject>(entityName: entity.name, limit: 5_000)
      request.includesSubentities = false
      var count = 0
      let time = try ContinuousClock().measure { count = try context.fetch(request).count }
      context.reset()
      total += time * (Double(all) / Double(max(count, 1)))
    }
    return total
  }

  // MARK: Objects

  private static func entities(_ mapping: MappingModel, _ counts: [Int]) -> [Entity] {
    mapping.entityMappings.filter { !mapping.destination.entities[$0.destination].isAbstract }.map { entity in
      Entity(
        name: mapping.destination.entities[entity.destination].name, formerName: entity.source.map { mapping.source.entities[$0].name },
        objectCount: entity.source.map { counts[$0.rawValue] } ?? 0, kind: entity.kind)
    }
  }

  private static func losses(_ mapping: MappingModel, _ context: ManagedObjectContext) throws -> [Loss] {
    var losses: [Loss] = []
    for entity in mapping.source.entities where !entity.isAbstract {
      guard let destination = mapping.destination(of: entity.index) else {
        losses.append(Loss(path: entity.name, objectCount: try count(mapping.source, entity.index, context)))
        continue
      }
      for (name, condition) in lost(entity, mapping.mapping(of: destination), mapping) {
        let count = try count(mapping.source, entity.index, where: condition, context)
        losses.append(Loss(path: "\(entity.name).\(name)", objectCount: count))
      }
    }
    return losses.filter { $0.objectCount > 0 }
  }

  /// The number of an entity's own objects.
  private static func count(
    _ model: ManagedObjectModel, _ index: EntityIndex, where condition: QueryExpression? = nil, _ context: ManagedObjectContext
  ) throws -> Int {
    var request = FetchRequest<ManagedObject>(entityName: model.entities[index].name, where: condition.map { FetchPredicate($0) })
    request.includesSubentities = false
    return try context.count(for: request)
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
      let path = PropertyPath(relationship.name)
      if mapping.keepsLinks(of: relationship, entity.index) {
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

  /// Whether the objects of an entity keep their links of a relationship, except for those to removed objects.
  fileprivate func keepsLinks(of relationship: ManagedObjectModel.Relationship, _ entity: EntityIndex) -> Bool {
    var isRead = false
    for mapping in entityMappings {
      for case let link? in mapping.links {
        guard let ends = ends(of: relationship, link) else { continue }
        if ends.contains(entity) { return true }
        isRead = true
      }
    }
    // If all other ends are removed, the preview reports their removal.
    return isRead && source.entities[relationship.destinationIndex].concreteIndexes.allSatisfy { destination(of: $0) == nil }
  }

  /// The entities whose objects keep their links as owners of a relationship; nil if a link mapping reads neither it nor its inverse.
  private func ends(of relationship: ManagedObjectModel.Relationship, _ link: LinkMapping) -> [EntityIndex]? {
    let read = self.relationship(link)
    if read.entityIndex == relationship.entityIndex && read.index == relationship.index {
      return link.isReversed ? link.destinations : link.owners
    }
    let isInverse = read.hasInverse && read.destinationIndex == relationship.entityIndex && read.inverseIndex == relationship.index
    return isInverse ? (link.isReversed ? link.owners : link.destinations) : nil
  }
}
