public import HoldfastStore

/// The versions of a model in order, and what your code does between them.
///
/// A store of any of these versions is migrated stage by stage to the last one. A stage without code is inferred, as when a store is opened.
/// A stage with code is for what can't be inferred: its closure gets the old and the new objects together.
///
/// ```swift
/// var plan = MigrationPlan(from: first)
/// plan.add(second)
/// plan.add(third, named: "split names") { stage in
///   try stage.forEach("Person") { old, new in
///     guard case .string(let name) = old["name"] else { return }
///     let parts = name.split(separator: " ", maxSplits: 1)
///     try new.setValue(String(parts[0]), forKey: "givenName")
///     try new.setValue(parts.count > 1 ? String(parts[1]) : "", forKey: "familyName")
///   }
/// }
/// try PersistentStoreCoordinator.migratePersistentStore(.sqlite(at: path), with: plan)
/// ```
///
/// The counterparts in Core Data are `NSStagedMigrationManager` and its stages.
public struct MigrationPlan: Sendable {
  struct Stage: Sendable {
    var model: ManagedObjectModel
    var name: String?
    var body: (@Sendable (MigrationStage) throws -> Void)?
  }

  let first: ManagedObjectModel
  private(set) var stages: [Stage] = []

  /// Begins with the oldest version of a model whose stores exist.
  public init(from first: ManagedObjectModel) { self.first = first }

  /// Adds a version to which stores of the previous one are migrated by an inferred mapping.
  public mutating func add(_ model: ManagedObjectModel) { stages.append(Stage(model: model)) }

  /// Adds a version to which a closure migrates stores of the previous one, after the inferred changes.
  ///
  /// Properties whose values can't be inferred are empty when the closure begins: attributes that change their type, and required attributes
  /// without a default value. When it ends, required attributes must have values. If objects have more destinations than the new relationships
  /// allow, those relationships are empty.
  ///
  /// - Parameters:
  ///   - model: The version.
  ///   - name: The stage's name in errors and progress.
  ///   - body: Sets values of new objects. It runs on the calling thread, before anything is changed at the store's place. Its errors end the
  ///     migration.
  public mutating func add(_ model: ManagedObjectModel, named name: String, _ body: @escaping @Sendable (MigrationStage) throws -> Void) {
    stages.append(Stage(model: model, name: name, body: body))
  }

  /// The last version.
  public var model: ManagedObjectModel { stages.last?.model ?? first }

  /// The stages that a store with some metadata still needs; nil if it has none of the versions.
  func stages(after metadata: PersistentStoreMetadata) -> (model: ManagedObjectModel, stages: ArraySlice<Stage>)? {
    if let place = stages.lastIndex(where: { metadata.isCompatible(with: $0.model) }) {
      return (stages[place].model, stages[(place + 1)...])
    }
    return metadata.isCompatible(with: first) ? (first, stages[...]) : nil
  }
}

/// How far a stage with code is.
public struct MigrationProgress: Sendable, Hashable {
  /// The stage's name.
  public let stage: String
  /// The number of objects that the current ``MigrationStage/forEach(_:savingEvery:_:)`` has passed to its closure.
  public let completedCount: Int
  /// The number of objects that it will pass to it.
  public let totalCount: Int
}
