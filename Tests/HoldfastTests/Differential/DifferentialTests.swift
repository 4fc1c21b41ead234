import Foundation
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// One step of a random program. Its numbers are taken modulo the available choices, so a program stays valid when steps are removed.
private struct Step {
  enum Kind: CaseIterable {
    case insert, insertMore, setValue, setGroup, setTransient, find, setToOne, clearToOne, add, insertAt, remove, move, delete, save,
      rollback, reopen, fetch, count, query, groups, refresh, pin
  }
  let kind: Kind
  let a: Int
  let b: Int
  let c: Int

  init(_ random: inout SeededGenerator) {
    kind = Kind.allCases[Int.random(in: 0..<Kind.allCases.count, using: &random)]
    a = Int.random(in: 0..<1 << 30, using: &random)
    b = Int.random(in: 0..<1 << 30, using: &random)
    c = Int.random(in: 0..<1 << 30, using: &random)
  }
}

/// Random programs on random models, with inheritance and relationships of every kind. Every store must agree with plain dictionaries, also
/// about random queries, and after it was reopened.
/// Prints its seed; HOLDFAST_SEED repeats a run. A failing program is shortened as far as possible.
@Suite struct DifferentialTests {
  private static let programCount = TestTier.count(12, full: 300)
  private static let stepCount = 500

  @Test(arguments: TestStore.allCases + [.spilled, .decoys]) func RH1_randomProgramsGiveWhatPlainDictionariesGive(_ store: TestStore) throws
  {
    try runPrograms([store])
  }

  /// The saves of a child change its parent, whose changes are saved when the store is reopened.
  @Test func RH1_randomProgramsInAChildContextGiveWhatPlainDictionariesGive() throws { try runPrograms([.child]) }

  /// Half of the objects are in each store. Relationships stay within a store.
  @Test(arguments: [[TestStore.memory, .sqlite], [.sqlite, .json], [.weakest, .binary]])
  func RH1_randomProgramsOnTwoStoresGiveWhatPlainDictionariesGive(_ stores: [TestStore]) throws {
    try runPrograms(stores, programCount: TestTier.count(4, full: 100))
  }

  /// Objects change themselves and others in their callbacks, and delete themselves.
  @Test(arguments: [[TestStore.memory], [.sqlite], [.binary], [.weakest], [.child], [.sqlite, .json]])
  func RH1_randomProgramsWithCallbacksGiveWhatPlainDictionariesGive(_ stores: [TestStore]) throws {
    try runPrograms(stores, programCount: TestTier.count(6, full: 150), hasCallbacks: true)
  }

  private func runPrograms(
    _ kinds: [TestStore], programCount: Int = DifferentialTests.programCount, hasCallbacks: Bool = false
  ) throws {
    let store = kinds.map(\.rawValue).joined(separator: " and ")
    var seeds = SeededGenerator()
    print("random programs on \(store): HOLDFAST_SEED=\(seeds.seed)")
    var (saves, refusals) = (0, 0)
    // A few programs alone may have few refusals.
    for number in 0..<max(50, 2 * programCount) where number < programCount || refusals <= 5 * programCount {
      var random = SeededGenerator(seed: seeds.next())
      let model = try RandomModel(&random, hasCallbacks: hasCallbacks)
      let program = (0..<Self.stepCount).map { _ in Step(&random) }
      let tally = Tally()
      // Every other program observes the context. Observing must not change anything else.
      let listens = number % 2 == 1
      guard let difference = run(program, model, kinds, tally, listens: listens) else {
        saves += tally.saves
        refusals += tally.refusals
        continue
      }
      let (short, last) = shorten(program, difference, model, kinds, listens)
      Issue.record(
        """
        HOLDFAST_SEED=\(seeds.seed), program \(number) on \(store): \(last)
        \(short.map { "  \($0.kind) \($0.a) \($0.b) \($0.c)" }.joined(separator: "\n"))
        \(model)
        """)
      return
    }
    // Programs in which every save is refused, or none, would be poor tests.
    #expect(saves > 5 * programCount && refusals > 5 * programCount, "\(saves) saves, \(refusals) refused")
  }

  /// Removes steps as long as the program still fails.
  private func shorten(_ program: [Step], _ difference: String, _ model: RandomModel, _ kinds: [TestStore], _ listens: Bool) -> (
    [Step], String
  ) {
    var (best, last) = (program, difference)
    var size = program.count / 2
    while size > 0 {
      var start = 0
      while start < best.count {
        var shorter = best
        shorter.removeSubrange(start..<min(start + size, best.count))
        if let still = run(shorter, model, kinds, listens: listens) { (best, last) = (shorter, still) } else { start += size }
      }
      size /= 2
    }
    return (best, last)
  }

  private func run(_ program: [Step], _ model: RandomModel, _ kinds: [TestStore], _ tally: Tally = Tally(), listens: Bool) -> String? {
    let complaints = Echo.Complaints()
    return Echo.$complaints.withValue(complaints) { run(program, model, kinds, tally, listens, complaints) }
  }

  private func run(
    _ program: [Step], _ model: RandomModel, _ kinds: [TestStore], _ tally: Tally, _ listens: Bool, _ complaints: Echo.Complaints
  ) -> String? {
    do {
      let machine = try Machine(model, kinds, tally, listens: listens)
      for (number, step) in program.enumerated() {
        do {
          try machine.take(step)
          if let first = complaints.first { return "step \(number), \(step.kind): \(first)" }
        } catch {
          return "step \(number), \(step.kind): \(error)"
        }
      }
      try machine.compareAll()
      return nil
    } catch {
      return "\(error)"
    }
  }
}

/// Records what a context reports.
private final class Ear {
  private var changes: [ObjectChanges] = []
  private var saves: [ObjectChanges] = []
  private var observations: [ContextObservation] = []

  func listen(to context: ManagedObjectContext) {
    forget()
    observations = [
      context.onChange { [unowned self] _, changes in self.changes.append(changes) },
      context.onSave { [unowned self] _, changes in saves.append(changes) },
    ]
  }

  func forget() {
    changes = []
    saves = []
  }

  /// The numbers of objects that the last save inserted and deleted.
  var savedCounts: (Int, Int) { (saves.last?.inserted.count ?? 0, saves.last?.deleted.count ?? 0) }

  /// The tags of the objects that the context has reported as changed or refreshed since the last step.
  func reported(by context: ManagedObjectContext) throws -> Set<Int> {
    try Ear.tags(changes.flatMap { $0.updated + $0.refreshed + $0.inserted }, context)
  }

  /// The tags of the objects that the last save reported as changed.
  func saved(by context: ManagedObjectContext) throws -> Set<Int> { try Ear.tags(saves.last?.updated ?? [], context) }

  private static func tags(_ ids: [ManagedObjectID], _ context: ManagedObjectContext) throws -> Set<Int> {
    Set(
      try ids.compactMap { id in
        guard let object = try? context.existingObject(with: id), case .single(.int64(let tag)) = try object.value(forKey: "tag") else {
          return nil
        }
        return Int(tag)
      })
  }
}

/// The numbers of saves that succeeded and of saves that were refused.
private final class Tally {
  var saves = 0
  var refusals = 0
}

/// Where a program runs: in one store, or in two stores of one coordinator. Then tags determine the store of an object.
private final class Ground {
  private let places: [TestStore.Place]
  /// The coordinator of two stores.
  private var coordinator: PersistentStoreCoordinator?

  init(_ kinds: [TestStore], _ model: ManagedObjectModel, _ classes: [ManagedObject.Type]) throws {
    places = try kinds.map { try $0.makePlace(model: model, classes: classes, losesOutcomes: kinds.count == 1) }
  }

  var isChild: Bool { places[0].store == .child }
  var outcomes: OutcomeStore? { places[0].outcomes }

  func context() throws -> ManagedObjectContext {
    if places.count == 1 { return try places[0].context() }
    let current = try coordinator ?? PersistentStoreCoordinator(model: places[0].model, stores: places.map(\.description))
    coordinator = current
    return try ManagedObjectContext(coordinator: current, classes: places[0].classes)
  }

  /// Closes the stores. The next context reopens them.
  func close() throws {
    if places.count == 1 { return try places[0].close() }
    try coordinator?.close()
    coordinator = nil
  }

  /// The store of an object with a tag; nil if there is only one.
  func store(of tag: Int) -> PersistentStore? { coordinator?.persistentStores[tag % places.count] }
  func areTogether(_ a: Int, _ b: Int) -> Bool { a % places.count == b % places.count }

  /// The position of an object's store among the stores.
  func storeIndex(of id: ManagedObjectID) -> Int {
    coordinator?.persistentStores.firstIndex { $0.identifier == id.storeIdentifier } ?? 0
  }
}

/// Runs the steps of a program on a store and on plain dictionaries.
private final class Machine {
  private let model: RandomModel
  private let ground: Ground
  private var context: ManagedObjectContext
  private var now: PlainGraph
  private var saved: PlainGraph
  private var nextTag = 1
  /// Objects with a strong reference, so that some stay registered.
  private var held: [Int: ManagedObject] = [:] {
    didSet { marks = marks.filter { held[$0.key] != nil } }
  }
  /// Their transient values.
  private var marks: [Int: Int64] = [:]
  private let tally: Tally
  /// What the context has reported since the last step; nil if the program doesn't observe it.
  private let ear: Ear?
  /// The objects that the context itself has inserted. They may not have been awakened.
  private var own: Set<Int> = []

  struct Difference: Error, CustomStringConvertible {
    let description: String
  }

  init(_ model: RandomModel, _ kinds: [TestStore], _ tally: Tally, listens: Bool) throws {
    self.model = model
    self.tally = tally
    ear = listens ? Ear() : nil
    ground = try Ground(kinds, model.model, model.classes)
    context = try ground.context()
    now = PlainGraph(model: model.model)
    saved = now
    ear?.listen(to: context)
  }

  // MARK: Choices

  private func tag(_ number: Int) -> Int? {
    let all = now.things.keys.sorted()
    return all.isEmpty ? nil : all[number % all.count]
  }

  private func object(_ tag: Int) throws -> ManagedObject {
    if let known = held[tag] { return known }
    guard let thing = now.things[tag] else { throw Difference(description: "there is no \(tag)") }
    let predicate = FetchPredicate<ManagedObject>(.comparison(.property("tag"), .equalTo, .constant(.int64(Int64(tag))), []))
    let entity = model.model.entities[thing.entity]
    let found = try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name, where: predicate))
    guard found.count == 1, found[0].entity.index == entity.index else {
      throw Difference(description: "\(found.count) objects of \(entity.name) with tag \(tag)")
    }
    if tag % 3 == 0 { held[tag] = found[0] }
    return found[0]
  }

  private func relationship(_ tag: Int, _ number: Int, _ fits: (PlainGraph.Relationship) -> Bool) -> PlainGraph.Relationship? {
    guard let thing = now.things[tag] else { return nil }
    let all = model.model.entities[thing.entity].relationships.filter(fits)
    return all.isEmpty ? nil : all[number % all.count]
  }

  // MARK: Steps

  func take(_ step: Step) throws {
    guard let ear else { return try perform(step) }
    let before = now
    ear.forget()
    try perform(step)
    if step.kind == .reopen || step.kind == .save { return }
    try context.processPendingChanges()
    let reported = try ear.reported(by: context)
    for tag in now.visiblyChanged(since: before) where !reported.contains(tag) {
      throw Difference(description: "onChange left out \(tag); it reported \(reported.sorted())")
    }
  }

  private func perform(_ step: Step) throws {
    switch step.kind {
    case .insert, .insertMore: try insert(step)
    case .setValue: try setValue(step)
    case .setGroup: try setGroup(step)
    case .setTransient: try setTransient(step)
    case .find: try find(step)
    case .setToOne, .clearToOne: try setToOne(step)
    case .add, .insertAt: try add(step)
    case .remove: try remove(step)
    case .move: try move(step)
    case .delete:
      // Only sometimes, so that objects are left.
      guard step.c % 3 == 0, let tag = tag(step.a) else { return }
      context.delete(try object(tag))
      if model.hasCallbacks { now.deleteEcho(tag, saved) } else { now.delete(tag, saved) }
      held = held.filter { now.things[$0.key] != nil }
      // Callbacks of a cascade read links. So they must run before the next change.
      if model.hasCallbacks { try context.processPendingChanges() }
    case .save:
      // Sometimes a refused save is rolled back. Otherwise it is retried with the next changes.
      if try !save(step) && step.a % 3 == 0 { rollback() }
    case .rollback:
      if step.a % 4 != 0 { return }
      rollback()
    case .reopen:
      if step.a % 2 == 0 {
        if try !save(step) { now = saved }
      } else if step.a % 8 == 1 {
        now = saved
      } else {
        return
      }
      held = [:]
      marks = [:]
      own = []
      try reopen(step.b)
      ear?.listen(to: context)
    case .query: try compareQuery(step)
    case .groups: try compareGroups(step)
    case .refresh: try refresh(step)
    case .pin: try pin(step)
    case .fetch: try compare(entity: EntityIndex(step.a % model.model.entities.count))
    case .count: try compareCounts(step)
    }
    if step.c % 16 == 0 { try compareAll() }
  }

  /// Continues without unsaved changes: in the same context, in a new one, or with the store reopened.
  private func reopen(_ number: Int) throws {
    if number % 4 == 0 { return context.reset() }
    context.rollback()
    if number % 4 == 1 {
      try context.setQueryGeneration(from: nil)
      try ground.close()
    }
    context = try ground.context()
  }

  /// Reads objects again. Their unsaved changes stay, and no other context changes the store.
  private func refresh(_ step: Step) throws {
    if step.b % 3 == 0 { return try context.refreshAllObjects() }
    guard let tag = tag(step.a) else { return }
    try context.refresh(object(tag), mergeChanges: true)
  }

  /// Pins the context to the current generation, or unpins it, and changes how it fires faults. Both change no values.
  private func pin(_ step: Step) throws {
    context.firesFaultsInBatches = step.b % 3 != 0
    do { try context.setQueryGeneration(from: step.a % 2 == 0 ? .current : nil) } catch let error as StoreError
      where error.code == .unsupportedRequest
    {}
  }

  private func rollback() {
    context.rollback()
    now = saved
    held = held.filter { now.things[$0.key] != nil && !$0.value.objectID.isTemporaryID }
  }

  /// Saves. An invalid graph must be refused, with the same errors on every store. Returns false then.
  private func save(_ step: Step) throws -> Bool {
    if model.hasCallbacks {
      now.saveEchoes(saved)
      held = held.filter { now.things[$0.key] != nil }
    }
    let wanted = now.failures, saves = held.compactMapValues { ($0 as? Echo)?.saves }
    do {
      try saveWithLoss(step)
    } catch let error as PersistenceError {
      let all = error.code == .multipleValidationFailures ? error.failures : [error]
      let found = try all.map { try "\($0.objectID.map(tagOf) ?? 0).\($0.property ?? "") \($0.code.rawValue)" }.sorted()
      try expect(found == wanted, "the save was refused for \(found) where \(wanted) should be; \(error)")
      tally.refusals += 1
      return false
    }
    try expect(wanted.isEmpty, "the save was not refused for \(wanted)")
    now.settle()
    if let ear {
      let reported = try ear.saved(by: context)
      for tag in now.visiblyChanged(since: saved, isSaved: true) where !reported.contains(tag) {
        throw Difference(
          description: "onSave left out \(tag), now \(now.things[tag]!), before \(saved.things[tag]!); it reported \(reported.sorted())")
      }
      let new = Set(now.things.keys).subtracting(saved.things.keys), gone = Set(saved.things.keys).subtracting(now.things.keys)
      try expect(ear.savedCounts == (new.count, gone.count), "onSave reported \(ear.savedCounts) for \(new.count), \(gone.count)")
    }
    for (tag, count) in saves where now.things[tag]?.values != saved.things[tag]?.values {
      let found = (held[tag] as? Echo)?.saves ?? 0
      try expect(found == count + 1, "\(tag) received \(found - count) calls of didSave where it should be 1")
    }
    saved = now
    tally.saves += 1
    return true
  }

  /// Saves. Some saves lose their outcome and are retried.
  private func saveWithLoss(_ step: Step) throws {
    let losses = OutcomeStore.Loss.allCases
    if step.b % 6 < losses.count { ground.outcomes?.loseCommit(losses[step.b % 6]) }
    defer { ground.outcomes?.clear() }
    do { try context.save() } catch let error as StoreError where error.code == .outcomeUnknown { try context.save() }
  }

  private func tagOf(_ id: ManagedObjectID) throws -> Int { try tagOf(try context.object(with: id)) }

  private func insert(_ step: Step) throws {
    let entity = model.concrete[step.a % model.concrete.count]
    let object = try context.insert(entityNamed: entity.name)
    if let store = ground.store(of: nextTag) { try context.assign(object, to: store) }
    try object.setValue(.int64(Int64(nextTag)), forKey: "tag")
    now.things[nextTag] = PlainGraph.Thing(entity: entity.index)
    if model.hasCallbacks { now.awakenEcho(nextTag) }
    own.insert(nextTag)
    if nextTag % 2 == 0 { held[nextTag] = object }
    nextTag += 1
  }

  private func setValue(_ step: Step) throws {
    guard let tag = tag(step.a), let thing = now.things[tag] else { return }
    let attributes = model.model.entities[thing.entity].attributes.filter { $0.name != "tag" && !Echo.Name.saved.contains($0.name) }
    if attributes.isEmpty { return }
    let attribute = attributes[step.b % attributes.count]
    let value = try value(attribute.type, step.c)
    try object(tag).setValue(value, forKey: attribute.name)
    now.things[tag]?.values[attribute.name] = value
  }

  private func value(_ type: AttributeType, _ number: Int) throws -> StoreValue {
    if number % 5 == 0 { return .null }
    if type == .objectID, number % 3 == 0, let tag = tag(number / 3), case let id = try object(tag).objectID, !id.isTemporaryID {
      return .objectID(id)
    }
    return RandomValue.make(type, number)
  }

  /// Sets a composite attribute to a value with some of its elements, or to nil.
  private func setGroup(_ step: Step) throws {
    guard let tag = tag(step.a), let thing = now.things[tag] else { return }
    let entity = model.model.entities[thing.entity]
    if entity.composites.isEmpty { return }
    let group = entity.composites[step.b % entity.composites.count]
    var wanted: [String: StoreValue] = [:]
    for slot in group.slots where step.c % 4 != 0 && (step.b + slot.rawValue) % 3 != 0 {
      if case .attribute(let attribute) = entity.slots[slot] { wanted[attribute.name] = try value(attribute.type, step.c + slot.rawValue) }
    }
    try object(tag).setValue(Machine.group(group, entity) { wanted[$0] ?? .null }, forKey: group.name)
    for slot in group.slots { now.things[tag]?.values[entity.slots[slot].name] = wanted[entity.slots[slot].name] ?? .null }
  }

  /// The value of a composite attribute, with elements from a closure.
  private static func group(
    _ group: ManagedObjectModel.CompositeAttribute, _ entity: ManagedObjectModel.Entity, _ value: (String) -> StoreValue
  ) -> PropertyValue {
    var elements: [String: PropertyValue] = [:]
    for slot in group.slots {
      let name = entity.slots[slot].name, rest = name.dropFirst(group.name.count + 1).split(separator: ".")
      if rest.count == 1 { elements[String(rest[0])] = .single(value(name)) }
    }
    for inner in entity.composites where inner.name.hasPrefix(group.name + ".") {
      elements[String(inner.name.dropFirst(group.name.count + 1))] = self.group(inner, entity, value)
    }
    let isEmpty = group.slots.allSatisfy { value(entity.slots[$0].name) == .null }
    return isEmpty ? .single(.null) : .composite(elements)
  }

  /// Sets the transient attribute of an object with a strong reference. Other objects can be released, with their values.
  private func setTransient(_ step: Step) throws {
    let tags = held.keys.filter { now.things[$0] != nil }.sorted()
    if tags.isEmpty { return }
    let tag = tags[step.a % tags.count]
    try object(tag).setValue(.int64(Int64(step.b)), forKey: "mark")
    marks[tag] = Int64(step.b)
  }

  /// Fetches the objects with a certain value.
  private func find(_ step: Step) throws {
    let entity = model.model.entities[step.a % model.model.entities.count]
    let attribute = entity.attributes[step.b % entity.attributes.count]
    if attribute.name == "tag" { return }
    // Transformed bytes can only be compared with nil.
    let value = attribute.type == .transformable ? .null : try value(attribute.type, step.c)
    let wanted = now.kind(entity.index).filter { (now.things[$0]?.values[attribute.name] ?? .null) == value }
    let predicate = QueryExpression.comparison(.property(PropertyPath(dotted: attribute.name)), .equalTo, .constant(value), [])
    let found = try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name, where: FetchPredicate(predicate))).map(tagOf)
    try expect(found.sorted() == wanted, "\(entity.name) with \(attribute.name) \(value): \(found.sorted()) where \(wanted) should be")
  }

  /// The objects that a relationship may reference: those in the same store.
  private func destinations(of tag: Int, _ relationship: PlainGraph.Relationship) -> [Int] {
    now.kind(relationship.destinationIndex).filter { ground.areTogether($0, tag) }
  }

  private func setToOne(_ step: Step) throws {
    guard let tag = tag(step.a), let relationship = relationship(tag, step.b, { !$0.isToMany }) else { return }
    let targets = destinations(of: tag, relationship)
    let target = step.kind == .clearToOne || targets.isEmpty ? nil : targets[step.c % targets.count]
    // The old and the new destination are only checked sometimes.
    let value = try target.map { StoreValue.objectID(try object($0).objectID) } ?? .null
    try object(tag).setValue(value, forKey: relationship.name)
    now.set(tag, relationship, target)
  }

  private func add(_ step: Step) throws {
    guard let tag = tag(step.a), let relationship = relationship(tag, step.b, { $0.isToMany }) else { return }
    let targets = destinations(of: tag, relationship)
    if targets.isEmpty { return }
    let target = targets[step.c % targets.count]
    if now.targets(tag, relationship).contains(target) { return }
    let (owner, added) = (try object(tag), try object(target))
    if relationship.hasTargetsToItself { try leaveOthers(target, relationship, but: tag) }
    if step.kind == .insertAt && relationship.isOrdered {
      let place = step.c % (now.targets(tag, relationship).count + 1)
      try owner.ordered(forKey: relationship.name).insert(added, at: place)
      now.add(tag, relationship, target, at: place)
    } else {
      try owner.toMany(forKey: relationship.name).insert(added)
      now.add(tag, relationship, target)
    }
  }

  /// Without an inverse, other owners keep the target, so the test removes it from them.
  private func leaveOthers(_ target: Int, _ relationship: PlainGraph.Relationship, but tag: Int) throws {
    for owner in now.kind(relationship.entityIndex) where owner != tag && now.targets(owner, relationship).contains(target) {
      try object(owner).toMany(forKey: relationship.name).remove(object(target))
      now.unlink(owner, relationship, target)
    }
  }

  private func remove(_ step: Step) throws {
    guard let tag = tag(step.a), let relationship = relationship(tag, step.b, { $0.isToMany }) else { return }
    let targets = now.targets(tag, relationship)
    if targets.isEmpty { return }
    let target = targets[step.c % targets.count]
    try object(tag).toMany(forKey: relationship.name).remove(object(target))
    now.unlink(tag, relationship, target)
  }

  private func move(_ step: Step) throws {
    guard let tag = tag(step.a), let relationship = relationship(tag, step.b, { $0.isOrdered }) else { return }
    let count = now.targets(tag, relationship).count
    if count < 2 { return }
    let (from, to) = (step.c % count, step.c / 7 % count)
    try object(tag).ordered(forKey: relationship.name).move(from: from, to: to)
    now.move(tag, relationship, from: from, to: to)
  }

  // MARK: Comparisons

  private func tagOf(_ object: ManagedObject) throws -> Int {
    guard case .int64(let tag) = try object.value(forKey: "tag").storeValue else { throw Difference(description: "\(object) has no tag") }
    return Int(tag)
  }

  private func expect(_ holds: Bool, _ message: @autoclosure () -> String) throws {
    if !holds { throw Difference(description: message()) }
  }

  func compareAll() throws {
    for entity in model.model.entities where entity.superentityIndex == nil { try compare(entity: entity.index) }
  }

  private func compare(entity: EntityIndex) throws {
    let entity = model.model.entities[entity]
    let found = try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name))
    let tags = try found.map(tagOf)
    try expect(tags.sorted() == now.kind(entity.index), "\(entity.name): \(tags.sorted()) where \(now.kind(entity.index)) should be")
    for (object, tag) in zip(found, tags) { try compare(object, tag) }
  }

  private func compare(_ object: ManagedObject, _ tag: Int) throws {
    guard let thing = now.things[tag] else { return }
    let entity = model.model.entities[thing.entity]
    try expect(object.entity.index == entity.index, "\(tag) is a \(object.entity.name) where it should be a \(entity.name)")
    for attribute in entity.attributes where attribute.name != "tag" {
      let (value, wanted) = (try object.value(forKey: attribute.name), thing.values[attribute.name] ?? .null)
      try expect(value == wanted, "\(tag).\(attribute.name) is \(value) where it should be \(wanted)")
    }
    for group in entity.composites {
      let (value, wanted) = (try object.value(forKey: group.name), Machine.group(group, entity) { thing.values[$0] ?? .null })
      try expect(value == wanted, "\(tag).\(group.name) is \(value) where it should be \(wanted)")
    }
    if held[tag] === object {
      let (mark, wanted) = (try object.value(forKey: "mark"), marks[tag].map { StoreValue.int64($0) } ?? .null)
      try expect(mark == wanted, "\(tag).mark is \(mark) where it should be \(wanted)")
    }
    if model.hasCallbacks {
      let seen = try object.value(forKey: Echo.Name.seen)
      try expect(seen == .int64(Int64(tag)) || seen == .null && own.contains(tag), "\(tag) wasn't awakened: \(seen)")
    }
    for relationship in entity.relationships {
      let wanted = now.targets(tag, relationship)
      if !relationship.isToMany {
        let target: ManagedObject? = object.toOne(relationship.slot)
        let isGone = now.dangling.contains([String(tag), relationship.name])
        let found = try target.flatMap { isGone && ($0.isInaccessible || $0.readsNothing) ? nil : try tagOf($0) }
        try expect(found == wanted.first, "\(tag).\(relationship.name) is \(found ?? 0) where it should be \(wanted.first ?? 0)")
      } else if relationship.isOrdered {
        let found = try object.ordered(forKey: relationship.name).map(tagOf)
        try expect(found == wanted, "\(tag).\(relationship.name) is \(found) where it should be \(wanted)")
      } else {
        let found = try object.toMany(forKey: relationship.name).map(tagOf)
        try expect(
          found.sorted() == wanted.sorted(), "\(tag).\(relationship.name) is \(found.sorted()) where it should be \(wanted.sorted())")
      }
    }
  }

  /// Fetches objects by a condition on a relationship, and compares them with the expected ones.
  private func compareCounts(_ step: Step) throws {
    guard let tag = tag(step.a), let relationship = relationship(tag, step.b, { _ in true }), let thing = now.things[tag] else { return }
    let entity = model.model.entities[thing.entity]
    let wanted = now.kind(entity.index).filter {
      relationship.isToMany
        ? now.targets($0, relationship).contains { $0 % 3 == step.c % 3 } : now.targets($0, relationship).contains { $0 % 3 == step.c % 3 }
    }
    let isIt = QueryExpression.comparison(.remainder(.property("tag"), 3), .equalTo, .constant(.int64(Int64(step.c % 3))), [])
    let predicate: QueryExpression =
      relationship.isToMany
      ? .any(PropertyPath(relationship.name), isIt)
      : .comparison(
        .remainder(.property(PropertyPath(relationship.name, ["tag"])), 3), .equalTo, .constant(.int64(Int64(step.c % 3))), [])
    let found = try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name, where: FetchPredicate(predicate))).map(tagOf)
    try expect(found.sorted() == wanted, "\(entity.name) whose \(relationship.name) …: \(found.sorted()) where \(wanted) should be")
  }
}

// MARK: Queries

extension Machine {
  /// Compares a random query, with or without unsaved changes.
  private func compareQuery(_ step: Step) throws {
    let query = try query(step)
    var request = FetchRequest<ManagedObject>(
      entityName: query.entity.name, where: query.predicate.map { FetchPredicate($0) },
      sortedBy: query.sorts.map { FetchSortDescriptor($0) }, offset: query.offset, limit: query.limit)
    request.includesSubentities = query.includesSubentities
    request.includesPendingChanges = step.c % 4 != 0
    // The objects are created last, so that the other results don't depend on them.
    let count = try context.count(for: request), ids = try context.fetchObjectIDs(request)
    let objects = try request.includesPendingChanges ? context.fetch(request) : []
    let survey = try Survey(ground, model.model, unsaved: now.things.keys)
    let wanted = (request.includesPendingChanges ? now : saved).answer(query, ranks: survey.ranks)
    func expectTags(_ tags: [Int], _ what: String) throws {
      let isSame = query.isOrdered ? tags == wanted : tags.sorted() == wanted.sorted()
      try expect(isSame, "\(query): \(what) \(tags) where \(wanted) should be, IDs \(query.ids)")
    }
    try expect(count == wanted.count, "\(query): count \(count) where \(wanted) should be, IDs \(query.ids)")
    if request.includesPendingChanges {
      try expectTags(ids.map { try tagOf($0) }, "IDs of")
      try expectTags(objects.map { try tagOf($0) }, "objects")
    } else {
      try expectTags(ids.map { survey.tags[$0] ?? 0 }, "saved IDs of")
    }
  }

  /// Compares random groups, which don't include unsaved changes.
  private func compareGroups(_ step: Step) throws {
    // The parent's unsaved changes are what a child has saved.
    if ground.isChild { return }
    let grouping = RandomGrouping(try query(step), avoiding: saved.relationshipsToDeleted, seed: UInt64(step.c))
    let found = try context.fetch(grouping.request)
    let survey = try Survey(ground, model.model, unsaved: now.things.keys)
    let wanted = saved.groups(grouping, ranks: survey.ranks, ids: survey.ids)
    try expect(found == wanted, "\(grouping): \(found) where \(wanted) should be")
  }

  private func query(_ step: Step) throws -> RandomQuery {
    let avoided = now.relationshipsToDeleted.union(saved.relationshipsToDeleted)
    return try RandomQuery(now, avoiding: avoided, seed: UInt64(step.a) << 32 | UInt64(step.b)) { try self.object($0).objectID }
  }
}

/// The IDs of the objects in a store, as another context reads them.
private struct Survey {
  /// The positions of objects in the order of their IDs, by tag.
  var ranks: [Int: Int64] = [:]
  var ids: [Int: ManagedObjectID] = [:]
  var tags: [ManagedObjectID: Int] = [:]

  /// - Parameter unsaved: Tags of objects. Those that the context doesn't find come last, in the order of their tags.
  init(_ ground: Ground, _ model: ManagedObjectModel, unsaved: some Sequence<Int>) throws {
    let context = try ground.context()
    for tag in unsaved { ranks[tag] = 1 << 60 + Int64(tag) }
    for entity in model.entities where entity.superentityIndex == nil {
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name)) {
        guard case .int64(let number) = try object.value(forKey: "tag").storeValue else { continue }
        let (tag, key) = (Int(number), object.objectID.key.rawValue)
        // A parent's new objects have temporary IDs, which count down.
        ranks[tag] = key >= 0 ? Int64(ground.storeIndex(of: object.objectID)) << 54 + key : 1 << 50 - key
        ids[tag] = object.objectID
        tags[object.objectID] = tag
      }
    }
  }
}

extension ManagedObject {
  /// Whether the row can't be read.
  fileprivate var readsNothing: Bool {
    _ = try? value(forKey: "tag")
    return isInaccessible
  }
}
