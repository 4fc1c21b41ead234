public import HoldfastStore

/// The versions of a model in order, and what your code does between them.
///
/// A store of any of these versions is migrated stage by stage to the last one. A stage without code is inferred, as when a store is opened. A
/// stage with code is for what can't be inferred: its closure gets the old and the new objects together.
///
/// If there are several ways, the one with the fewest stages is used, and of two stages between the same versions the first one.
///
/// Models with equal version hashes and row layouts are the same version, and a stage between them is never used. Stores of other programs
/// have no layout hashes (``/HoldfastStore/ManagedObjectModel/entityLayoutHashesByName``), so for them equal version hashes suffice.
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
    /// The indexes of the versions.
    var source: Int
    var destination: Int
    var name: String?
    var isResumable = false
    /// What distinguishes stages whose name and versions are the same.
    var fingerprint = ""
    var rules: MappingRules?
    /// The entities into which the code inserts objects that are complete only at its end.
    var incompleteEntities: Set<String> = []
    var body: (@Sendable (MigrationStage) throws -> Void)?
  }

  /// The versions, without repeated ones.
  private(set) var versions: [ManagedObjectModel]
  private var stages: [Stage] = []
  /// The index of the version that was added last.
  private var last = 0

  /// Begins with the oldest version of a model whose stores exist.
  public init(from first: ManagedObjectModel) { versions = [first] }

  /// Adds a version to which stores of the previous one are migrated by an inferred mapping.
  public mutating func add(_ model: ManagedObjectModel) { addStage(to: model, after: nil, named: nil, nil) }

  /// Adds a version to which a closure migrates stores of the previous one, after the inferred changes.
  ///
  /// Properties whose values can't be inferred are empty when the closure begins: attributes that change their type, and required attributes
  /// without a default value. When it ends, required attributes must have values. If objects have more destinations than the new relationships
  /// allow, those relationships are empty.
  ///
  /// - Parameters:
  ///   - model: The version. If the plan contains it, the stage is another way to it. Traps if it has the version hashes and the layout of
  ///     the version before.
  ///   - former: An earlier version of the plan, for a stage that skips versions. Defaults to the version that was added last. Traps if the
  ///     plan doesn't contain it.
  ///   - name: The stage's name in errors and progress. If the code of a stage changes, change the name: an interrupted plan isn't continued if
  ///     stages have other names.
  ///   - isResumable: Whether a stage that was interrupted continues behind the last batch of ``MigrationStage/forEach(_:savingEvery:_:)`` that was
  ///     saved. Defaults to false: it begins again. See <doc:MigrateAStore>.
  ///   - body: Sets values of new objects. It runs on the calling thread, before anything is changed at the store's place. Its errors end the
  ///     migration.
  public mutating func add(
    _ model: ManagedObjectModel, after former: ManagedObjectModel? = nil, named name: String, isResumable: Bool = false,
    _ body: @escaping @Sendable (MigrationStage) throws -> Void
  ) {
    addStage(to: model, after: former, named: name, isResumable: isResumable, body)
    guard let stage = stages.last, stage.source == stage.destination else { return }
    preconditionFailure(
      "The stage \(name) would never run, because both of its versions have the same version hashes and layout. Give an entity of the new "
        + "version another versionHashModifier.")
  }

  /// The same, with rules that say what belongs together in the two versions, and the entities into which the code inserts objects by
  /// ``MigrationStage/completingObjects(_:)``.
  package mutating func addStage(
    to model: ManagedObjectModel, after former: ManagedObjectModel?, named name: String?, isResumable: Bool = false,
    by rules: MappingRules? = nil, fingerprint: String = "", incomplete: Set<String> = [],
    _ body: (@Sendable (MigrationStage) throws -> Void)?
  ) {
    guard let source = former.map({ index(of: $0) }) ?? last else {
      preconditionFailure("The plan doesn't contain the version after which a stage was added.")
    }
    let known = index(of: model), destination = known ?? versions.count
    // Renaming identifiers and default values may differ between models of the same version.
    if let known { versions[known] = model } else { versions.append(model) }
    stages.append(
      Stage(
        source: source, destination: destination, name: name, isResumable: isResumable, fingerprint: fingerprint, rules: rules,
        incompleteEntities: incomplete, body: body))
    if former == nil || known == nil { last = destination }
  }

  /// The last version.
  public var model: ManagedObjectModel { versions[last] }

  /// Adds a version without a stage, unless the plan contains it. The last version remains.
  package mutating func include(_ model: ManagedObjectModel) { if index(of: model) == nil { versions.append(model) } }

  private func index(of model: ManagedObjectModel) -> Int? {
    let digest = Self.digest(model)
    return versions.firstIndex { Self.digest($0) == digest }
  }

  /// What distinguishes a version from others: stores compare it when they are opened.
  private static func digest(_ model: ManagedObjectModel) -> String {
    let layout = model.layoutDigest
    return layout.isEmpty ? model.versionDigest : "\(model.versionDigest) \(layout)"
  }

  /// What a stage changes before its code runs.
  func mapping(of stage: Stage) throws -> MappingModel {
    let (old, new) = (versions[stage.source], versions[stage.destination])
    return stage.body == nil
      ? try MappingModel.inferred(from: old, to: new) : try MappingModel.partial(from: old, to: new, by: stage.rules).mapping
  }

  /// What distinguishes a stage from those that an interrupted run may have done instead.
  func key(_ stage: Stage) -> String {
    "\(Self.digest(versions[stage.source])) \(Self.digest(versions[stage.destination])) \(stage.name ?? "") \(stage.fingerprint)"
  }

  /// The stages that a store with some metadata still needs, as few as possible; nil if none lead from its version to the last one.
  func stages(after metadata: PersistentStoreMetadata) -> [Stage]? {
    guard let version = versions.firstIndex(where: { metadata.isCompatible(with: $0) }) else { return nil }
    if metadata.entityLayoutHashes != nil { return way(from: version, stages) }
    // Such a store doesn't show which of several versions with equal version hashes it has. So no stage leads from one to the other.
    let united = stages.map { stage in
      var stage = stage
      (stage.source, stage.destination) = (latest(stage.source), latest(stage.destination))
      return stage
    }
    return way(from: latest(version), united)
  }

  /// The last of the versions with the version hashes of one of them.
  private func latest(_ version: Int) -> Int {
    func isSame(_ other: ManagedObjectModel) -> Bool { other.versionDigest == versions[version].versionDigest }
    return isSame(model) ? last : versions.lastIndex(where: isSame) ?? version
  }

  /// The way with the fewest stages from a version to the last one.
  private func way(from start: Int, _ stages: [Stage]) -> [Stage]? {
    var paths: [Int: [Stage]] = [start: []], next = [start]
    while let version = next.first, let path = paths[version] {
      if version == last { return path }
      next.removeFirst()
      for stage in stages where stage.source == version && paths[stage.destination] == nil {
        paths[stage.destination] = path + [stage]
        next.append(stage.destination)
      }
    }
    return nil
  }

  /// Whether a store of a version may lose something that no stage was written for: it has a version from which no stages lead to the last one.
  ///
  /// - Throws: ``/HoldfastStore/MigrationError`` if a stage can't be mapped, or no stages lead to the last version and it can't be inferred.
  package func mayLoseData(from former: ManagedObjectModel) throws -> Bool {
    guard let path = index(of: former).flatMap({ way(from: $0, stages) }) else {
      return try MappingModel.inferred(from: former, to: model).mayLoseData
    }
    for stage in path { _ = try mapping(of: stage) }
    return false
  }
}

/// How far a ``MigrationPlan`` is.
public struct MigrationProgress: Sendable, Hashable {
  /// The name of the stage with code that runs; empty otherwise.
  public let stage: String
  /// The number of objects that the current ``MigrationStage/forEach(_:savingEvery:_:)`` has passed to its closure; 0 outside of it.
  public let completedCount: Int
  /// The number of objects that it will pass to it; 0 outside of it.
  public let totalCount: Int
  /// The share of the plan that is complete, from 0 to 1. Never less than before.
  ///
  /// Every stage counts the same, however long it takes. In a plan with code, so does the copy at its beginning, and that at its end. The
  /// number of loops in a closure isn't known, so each loop counts as half of the rest of its stage.
  public let fractionCompleted: Double
}
