import FoundationEssentials
import Holdfast
import HoldfastStoreConformance
import TestSupport
import Testing

/// Random changes in two contexts. After every save, all derived values must equal recomputed ones. Prints its seed; HOLDFAST_SEED repeats
/// a run.
@Suite struct DerivedRandomTests {
  private struct Failure: Error, CustomStringConvertible { let description: String }

  @Test(arguments: TestStore.allCases) func `derived values equal those recomputed from all objects`(_ store: TestStore) throws {
    var random = SeededGenerator()
    for round in 0..<(store == .memory ? TestTier.count(6, full: 12) : TestTier.count(2, full: 5)) {
      let seed = random.next()
      do {
        try run(store, SeededGenerator(seed: seed), contextCount: round % 2 + 1)
      } catch {
        Issue.record("seed \(random.seed), round \(round) on \(store): \(error)")
        return
      }
    }
  }

  private func run(_ store: TestStore, _ generator: SeededGenerator, contextCount: Int) throws {
    var random = generator
    let place = try store.park()
    var contexts = try (0..<contextCount).map { _ in try place.context() }
    var log: [String] = []
    for step in 0..<30 {
      let number = Int.random(in: 0..<contexts.count, using: &random)
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        log.append("\(number): \(try change(contexts[number], step, &random))")
      }
      if Int.random(in: 0..<8, using: &random) == 0 {
        contexts[number].rollback()
        log.append("\(number): rollback")
        continue
      }
      do {
        try contexts[number].save()
        log.append("\(number): saved")
      } catch let error as PersistenceError where error.code == .conflict || error.code == .multipleValidationFailures {
        log.append("\(number): \(error.code)")
        contexts[number].reset()
        continue
      }
      let fresh = try place.context(), scratch = try Scratch(fresh)
      var differences = try scratch.differences()
      if contexts.count == 1 {
        // The saving context itself shows the current values.
        for object in contexts[0].registeredObjects where !object.isFault && !object.isInaccessible {
          guard let other = try? fresh.existingObject(with: object.objectID) else { continue }
          for attribute in object.entity.derivedAttributes where object[attribute.name] != other[attribute.name] {
            differences.append("\(object).\(attribute.name) shows \(object[attribute.name]), not \(other[attribute.name])")
          }
        }
      }
      if !differences.isEmpty { throw Failure(description: "\(differences.prefix(5))\n\(log.suffix(40).joined(separator: "\n"))") }
      if Int.random(in: 0..<10, using: &random) == 0 {
        contexts = []
        try place.close()
        contexts = try (0..<contextCount).map { _ in try place.context() }
        log.append("reopened")
      } else if Int.random(in: 0..<4, using: &random) == 0 {
        try contexts[number].refreshAllObjects()
      }
    }
  }

  private static let toOnes = [
    ("Dog", "owner", "Person"), ("Dog", "breed", "Breed"), ("Dog", "collar", "Collar"), ("Walk", "dog", "Dog"), ("Bill", "dog", "Dog"),
    ("Collar", "dog", "Dog"),
  ]
  private static let toManys = [
    ("Dog", "walks", "Walk"), ("Dog", "tricks", "Trick"), ("Trick", "dogs", "Dog"), ("Dog", "toys", "Toy"), ("Dog", "sitters", "Sitter"),
    ("Sitter", "charges", "Dog"), ("Dog", "friends", "Dog"), ("Person", "dogs", "Dog"), ("Dog", "bills", "Bill"),
  ]
  private static let values: [(String, String, @Sendable (Int) -> StoreValue)] = [
    ("Dog", "name", { .string("Dög \($0)") }), ("Person", "name", { .string("Përson \($0)") }),
    ("Breed", "name", { .string("Breed \($0)") }),
    ("Collar", "colour", { .string("colour \($0)") }), ("Walk", "minutes", { .int32(Int32($0)) }),
    ("Walk", "cost", { .decimal(Decimal($0) / 10) }), ("Walk", "distance", { .double(Double($0) / 10) }),
    ("Trick", "level", { .int32(Int32($0)) }), ("Trick", "ease", { .double(Double($0) / 7) }), ("Toy", "price", { .int32(Int32($0)) }),
    ("Sitter", "age", { .int16(Int16($0)) }),
  ]

  /// Makes one change and returns its description.
  private func change(_ context: ManagedObjectContext, _ step: Int, _ random: inout SeededGenerator) throws -> String {
    func any(_ entity: String) throws -> ManagedObject? {
      try context.all(entity).filter { !$0.isDeleted && !$0.isInaccessible }.randomElement(using: &random)
    }
    switch Int.random(in: 0..<12, using: &random) {
    case 0...3:
      let entity = ["Dog", "Walk", "Walk", "LongWalk", "Trick", "Toy", "Breed", "Collar", "Bill", "Sitter", "Person"].randomElement(
        using: &random)!
      let object = context.make(entity)
      for (owner, name, value) in DerivedRandomTests.values where object.entity.name == owner || owner == "Walk" && entity == "LongWalk" {
        if Bool.random(using: &random) { object[name] = value(step) }
      }
      if ["Walk", "LongWalk", "Bill"].contains(entity) { object.lead("dog", to: try any("Dog")) }
      return "insert \(object.objectID.key) \(entity)"
    case 4, 5:
      let (entity, name, target) = DerivedRandomTests.toOnes.randomElement(using: &random)!
      guard let object = try any(entity) else { return "nothing" }
      let other = Int.random(in: 0..<4, using: &random) == 0 ? nil : try any(target)
      object.lead(name, to: other)
      return "\(entity) \(object.objectID.key).\(name) = \(other?.objectID.key ?? 0)"
    case 6, 7, 8:
      let (entity, name, target) = DerivedRandomTests.toManys.randomElement(using: &random)!
      guard let object = try any(entity), let other = try any(target) else { return "nothing" }
      if Int.random(in: 0..<3, using: &random) == 0 {
        object.many(name).remove(other)
        return "\(entity) \(object.objectID.key).\(name) - \(other.objectID.key)"
      }
      object.many(name).insert(other)
      return "\(entity) \(object.objectID.key).\(name) + \(other.objectID.key)"
    case 9, 10:
      let (entity, name, value) = DerivedRandomTests.values.randomElement(using: &random)!
      guard let object = try any(entity) else { return "nothing" }
      object[name] = Int.random(in: 0..<5, using: &random) == 0 ? .null : value(Int.random(in: 0..<100, using: &random))
      return "\(entity) \(object.objectID.key).\(name) changed"
    default:
      let entity = ["Dog", "Walk", "Trick", "Toy", "Breed", "Collar", "Bill", "Sitter", "Person"].randomElement(using: &random)!
      guard let object = try any(entity) else { return "nothing" }
      context.delete(object)
      return "delete \(entity) \(object.objectID.key)"
    }
  }
}
