import HoldfastStore
import TestSupport

@testable import Holdfast

/// Contexts that race on one store, and run the steps of a program one by one.
final class PolicyRace {
  /// What takes part besides three contexts on a random graph.
  struct Setup {
    /// Whether objects have unique values, which are chosen from few.
    var hasUniqueValues = false
    /// Whether the third context has two children, or a child and a grandchild.
    var hasChildren = false
    /// Whether objects have derived values.
    var hasDerivedValues = false
    /// A second store of the coordinator, which gets half of the objects; nil for a single store.
    var secondStore: TestStore?
    /// The number of the context that has a ``RaceScreen``; nil for none. The context and its parents merge changes automatically.
    var screen: Int?
  }

  /// The policies of ``MergePolicyTests``, and `error`.
  enum Policy: String, CaseIterable {
    case storeTrump, objectTrump, overwrite, rollback, error

    /// The policy that resolves conflicts; nil for `error`.
    private var resolving: MergePolicyTests.Policy? { MergePolicyTests.Policy(rawValue: rawValue) }

    var policy: MergePolicy { resolving?.policy ?? .error }
    var prefersOurs: Bool { resolving?.prefersOurs ?? false }
  }

  let model: RandomModel
  private(set) var log: [String] = []
  private let places: [TestStore.Place]
  /// The coordinator of two stores; nil if there is only one.
  private let coordinator: PersistentStoreCoordinator?
  /// Parents precede their children.
  private let contexts: [ManagedObjectContext]
  /// The last objects that each context without children has read. They stay in it, and may be older than the store.
  private var held: [[ManagedObject]]
  /// What a screen shows of one of the contexts; nil if there is none.
  private let screen: RaceScreen?
  /// The contents of the store since the last save.
  private var saved = RaceContents()
  private var step = 0

  init(_ store: TestStore, _ setup: Setup, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let model = try RandomModel(&random, hasUniqueValues: setup.hasUniqueValues, hasDerivedValues: setup.hasDerivedValues)
    places = try ([store] + [setup.secondStore].compactMap(\.self)).map { try $0.makePlace(model: model.model, classes: []) }
    coordinator =
      setup.secondStore == nil ? nil : try PersistentStoreCoordinator(model: model.model, stores: places.map(\.description))
    var contexts: [ManagedObjectContext] = []
    for _ in 0..<3 { contexts.append(try PolicyRace.context(places, coordinator)) }
    if setup.hasChildren {
      contexts.append(ManagedObjectContext(parent: contexts[2]))
      contexts.append(ManagedObjectContext(parent: contexts[seed & 32 == 0 ? 2 : 3]))
    }
    (self.model, self.contexts) = (model, contexts)
    held = contexts.map { _ in [] }
    screen = setup.screen.map { RaceScreen(contexts[$0], model.model) }
    let shown = setup.screen.map { Array(sequence(first: contexts[$0]) { $0.parent }) } ?? []
    for (number, context) in contexts.enumerated() {
      let isShown = shown.contains { $0 === context }
      context.automaticallyMergesChanges = isShown || number == 0 || seed >> UInt64(number) & 1 == 0
      context.firesFaultsInBatches = seed & 1 == 0
      if context.automaticallyMergesChanges { log.append("\(number): merges automatically") }
    }
  }

  private static func context(_ places: [TestStore.Place], _ coordinator: PersistentStoreCoordinator?) throws -> ManagedObjectContext {
    try coordinator.map { try ManagedObjectContext(coordinator: $0) } ?? places[0].context()
  }

  func run(_ step: PolicyRaceProgram.Step) throws {
    self.step += 1
    let context = contexts[step.context % contexts.count]
    do {
      try run(step, context)
      try screen?.check()
    } catch let error as PersistenceError where error.code == .missingObject || error.code == .unreadValues {
      // A context has deleted an object that another one reads.
      note("\(error.code), roll back", context)
      try reset(context)
    }
  }

  private func note(_ what: @autoclosure () -> String, _ context: ManagedObjectContext) {
    log.append("\(contexts.firstIndex { $0 === context } ?? 9): \(what())")
  }

  private func reset(_ context: ManagedObjectContext) throws {
    context.rollback()
    do { try readAgain(context) } catch let error as PersistenceError {
      // The parent has changed an object that another context has deleted.
      guard let parent = context.parent else { throw error }
      try reset(parent)
      try readAgain(context)
    }
  }

  private func readAgain(_ context: ManagedObjectContext) throws {
    try context.refreshAllObjects()
    if context.automaticallyMergesChanges { try context.processPendingChanges() }
  }

  // MARK: Steps

  private func run(_ step: PolicyRaceProgram.Step, _ context: ManagedObjectContext) throws {
    let numbers = step.numbers
    switch step.kind {
    case .insert:
      let object = try context.insert(entityNamed: model.concrete[numbers[0] % model.concrete.count].name)
      if let stores = coordinator?.persistentStores { try context.assign(object, to: stores[numbers[1] % stores.count]) }
      try tag(object)
      try number(object, numbers)
      note("insert \(object)", context)
    case .link: try link(numbers, context, isAddition: true)
    case .unlink: try link(numbers, context, isAddition: false)
    case .tag: try pick(numbers, context, "tag", tag)
    case .number: try pick(numbers, context, "number") { try number($0, numbers) }
    case .move: try move(numbers, context)
    case .delete:
      try pick(numbers, context, "delete") { context.delete($0) }
      if numbers[2] % 2 == 0 { try context.processPendingChanges() }
    case .read:
      try pick(numbers, context, "read") { object in
        for relationship in object.entity.relationships { _ = try RaceContents.targets(object, relationship) }
        hold(object, context)
      }
    case .refresh: try pick(numbers, context, "refresh") { try context.refresh($0, mergeChanges: numbers[2] % 2 == 0) }
    case .discard:
      let changed = (context.updatedObjects + context.deletedObjects).sorted { $0.objectKey < $1.objectKey }
      if changed.isEmpty { return }
      let object = changed[numbers[0] % changed.count]
      note("discard \(object)", context)
      try context.discardChanges(of: [object.objectID])
    case .merge:
      note("merge", context)
      try context.processPendingChanges()
    case .save: try save(context, Policy.allCases[numbers[0] % 5], afterRefusal: numbers[1])
    case .saveAll:
      for context in contexts.reversed() { try save(context, Policy.allCases[numbers[0] % 4], afterRefusal: nil) }
      try compare()
    }
  }

  private func root(_ number: Int) -> String {
    let roots = model.model.entities.filter { $0.superentityIndex == nil }
    return roots[number % roots.count].name
  }

  private func pick(_ entity: String, _ number: Int, _ context: ManagedObjectContext) throws -> ManagedObject? {
    let objects = try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).sorted { $0.objectKey < $1.objectKey }
    return objects.isEmpty ? nil : objects[number % objects.count]
  }

  /// Runs a closure with an object, if there is one.
  private func pick(_ numbers: [Int], _ context: ManagedObjectContext, _ what: String, _ body: (ManagedObject) throws -> Void) throws {
    guard let object = try pick(root(numbers[0]), numbers[1], context) else { return }
    note("\(what) \(object)", context)
    try body(object)
  }

  private func hold(_ object: ManagedObject, _ context: ManagedObjectContext) {
    guard let number = contexts.firstIndex(where: { $0 === context }), !contexts.contains(where: { $0.parent === context }) else { return }
    held[number] = Array(held[number].suffix(11)) + [object]
  }

  private func tag(_ object: ManagedObject) throws { try object.setValue(.int64(Int64(step)), forKey: "tag") }

  /// Gives an object unique values that others probably have.
  private func number(_ object: ManagedObject, _ numbers: [Int]) throws {
    for names in object.entity.uniquenessConstraints {
      for (place, name) in names.enumerated() {
        let number = numbers[place + 2] % (names.count == 1 ? 8 : 4)
        let value: StoreValue = number == 0 ? .null : .int64(Int64(number))
        try object.setValue(value, forKey: name)
      }
    }
  }

  private func link(_ numbers: [Int], _ context: ManagedObjectContext, isAddition: Bool) throws {
    guard let object = try pick(root(numbers[0]), numbers[1], context), !object.entity.relationships.isEmpty else { return }
    let relationship = object.entity.relationships[numbers[2] % object.entity.relationships.count]
    let target = try pick(model.model.destination(of: relationship).name, numbers[3], context)
    // The second fetch may have merged the deletion of the object.
    if object.isInaccessible || isAddition && target.map({ store(of: $0, context) != store(of: object, context) }) == true { return }
    note("\(isAddition ? "link" : "unlink") \(object) \(relationship.name) \(target.map { "\($0)" } ?? "nil")", context)
    if !relationship.isToMany {
      object.setToOne(relationship, isAddition ? target : nil)
    } else if let target {
      let targets = try object.toMany(forKey: relationship.name)
      if isAddition { targets.insert(target) } else { targets.remove(target) }
    }
  }

  /// The store of an object, which may be new.
  private func store(of object: ManagedObject, _ context: ManagedObjectContext) -> String? {
    context.core.changes.store(assignedTo: object)?.identifier ?? object.objectID.storeIdentifier
  }

  private func move(_ numbers: [Int], _ context: ManagedObjectContext) throws {
    guard let object = try pick(root(numbers[0]), numbers[1], context) else { return }
    let ordered = object.entity.relationships.filter(\.isOrdered)
    if ordered.isEmpty { return }
    let relationship = ordered[numbers[2] % ordered.count], list = try object.ordered(forKey: relationship.name)
    if list.count < 2 { return }
    note("move \(object) \(relationship.name) \(numbers[3] % list.count)", context)
    list.move(from: numbers[3] % list.count, to: numbers[0] % list.count)
  }

  // MARK: Saves

  /// Saves, and compares what the store or the parent has before and after it.
  ///
  /// - Parameter choice: Chooses what happens if the save is refused; nil to discard the changes.
  private func save(_ context: ManagedObjectContext, _ policy: Policy, afterRefusal choice: Int?) throws {
    note("save \(policy)", context)
    // The parents merge what others have saved when the save asks them.
    for parent in sequence(first: context, next: { $0.parent }).dropFirst().reversed() where parent.automaticallyMergesChanges {
      try parent.processPendingChanges()
    }
    let before = context.parent == nil ? saved : try contents(above: context)
    let expectation = try SaveExpectation(context, policy, before)
    context.mergePolicy = policy.policy
    defer { context.mergePolicy = .error }
    do {
      try saveInFewAttempts(context)
    } catch let error as PersistenceError {
      note("\(error.code)", context)
      try checkRefusal(error, policy, context)
      let after = try contents(above: context)
      if after != before { throw RaceFault("The refused save has changed objects: \(after.differences(from: before))") }
      try expectation.checkRefusal()
      return try recover(context, from: error, choice)
    }
    let after = try contents(above: context)
    note("saved \(after.differences(from: before))", context)
    if context.parent == nil { saved = after }
    try expectation.check(after)
  }

  /// Saves. No other context saves meanwhile, so each attempt resolves some conflicts for good.
  private func saveInFewAttempts(_ context: ManagedObjectContext) throws {
    let coordinator = context.core.persistentStoreCoordinator, former = coordinator.requestCounts.saves
    let limit = 10 + 2 * context.core.changes.objects.count
    let result = Result { try context.save() }
    let attempts = coordinator.requestCounts.saves - former
    if attempts > limit { throw RaceFault("The save made \(attempts) attempts.") }
    try result.get()
  }

  /// What the store has, which must be sound, or what the parent shows to its children.
  private func contents(above context: ManagedObjectContext) throws -> RaceContents {
    if let parent = context.parent { return try RaceContents(ManagedObjectContext(parent: parent), model.model) }
    return try RaceContents(PolicyRace.context(places, coordinator), model.model, isSound: true)
  }

  private func checkRefusal(_ error: PersistenceError, _ policy: Policy, _ context: ManagedObjectContext) throws {
    let isResolved = policy == .storeTrump || policy == .rollback
    if error.code == .conflict && isResolved { throw RaceFault("The policy didn't resolve the conflict: \(error)") }
    if error.code != .constraintConflict || policy == .error { return }
    let conflicts = (error.cause as? StoreError)?.constraintConflicts ?? []
    let isAllowed = conflicts.contains { conflict in
      guard let existing = conflict.existing else { return true }
      // A new object never becomes one of another entity, and two saved objects never become one.
      let isNew = context.registeredObject(for: conflict.objectID)?.isInserted == true
      return isNew ? existing.entityName != conflict.objectID.entityName : !isResolved
    }
    if !isAllowed { throw RaceFault("The policy didn't resolve the conflict of unique values: \(error)") }
  }

  /// Resolves the conflicts of a refused save, keeps its changes for the next one, or discards them.
  private func recover(_ context: ManagedObjectContext, from error: PersistenceError, _ choice: Int?) throws {
    let isConflict = error.code == .conflict || error.code == .constraintConflict
    guard let choice, isConflict, choice % 4 < 2 else { return try reset(context) }
    note(choice % 4 == 0 ? "resolve" : "keep", context)
    if choice % 4 == 1 { return }
    do {
      try context.resolveConflicts(of: error, using: choice % 8 == 0 ? .mergeByPropertyObjectTrump : .rollback)
    } catch is PersistenceError {
      try reset(context)
    }
  }

  // MARK: Comparisons

  /// Contexts without changes have the graph of a new context.
  private func compare() throws {
    for (number, context) in contexts.enumerated() {
      let family = Array(sequence(first: context) { $0.parent })
      if family.contains(where: \.hasChanges) { continue }
      if family.allSatisfy(\.automaticallyMergesChanges) { try context.processPendingChanges() } else { try context.refreshAllObjects() }
      note("compare", context)
      let own = try RaceContents(context, model.model)
      if own != saved { throw RaceFault("Context \(number) differs: \(own.differences(from: saved))") }
    }
  }
}
