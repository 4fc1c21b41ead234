import Foundation
import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Fetches by a unique value, and objects that are reached from the found one, on every store. Both have short paths.
@Suite struct LookUpTests {
  /// The names of the dogs with a chip.
  private func names(_ chip: Int64, _ context: ManagedObjectContext) throws -> [String] {
    try context.fetch(Dog.self) { $0.chip == chip }.map(\.name)
  }

  @Test(arguments: TestStore.withChild) func `a look-up includes unsaved objects and values, and no deleted objects`(
    _ store: TestStore
  ) throws {
    let context = try store.makeKennelsOfTwo().context()
    #expect(try names(1, context) == ["Fido"] && names(9, context) == [])
    let fido = try #require(try context.fetch(Dog.self) { $0.chip == 1 }.first)
    context.dog("Max").chip = 9
    #expect(try names(9, context) == ["Max"] && names(2, context) == ["Rex"])
    fido.chip = 7
    fido.name = "Fred"
    #expect(try names(1, context) == [] && names(7, context) == ["Fred"])
    context.delete(fido)
    #expect(try names(7, context) == [] && names(1, context) == [] && names(2, context) == ["Rex"])
    var saved = FetchRequest<Dog> { $0.chip == 1 }
    saved.includesPendingChanges = false
    #expect(try context.fetch(saved).count == 1)
    context.rollback()
    #expect(try names(1, context) == ["Fido"] && names(7, context) == [] && names(9, context) == [])
    #expect(try context.fetch(Dog.self) { $0.chip == 1 }.first === fido)
  }

  @Test(arguments: TestStore.allCases) func `a look-up makes one object of each row, and reads it again after a refresh`(
    _ store: TestStore
  ) throws {
    let context = try store.makeKennelsOfTwo().context()
    let all = try context.fetch(Dog.self, sortedBy: \.name), fido = all[0]
    #expect(try context.fetch(Dog.self) { $0.chip == 1 }.first === fido)
    try context.refresh(fido, mergeChanges: false)
    #expect(fido.isFault)
    let found = try #require(try context.fetch(Dog.self) { $0.chip == 1 }.first)
    #expect(found === fido && !fido.isFault && fido.age == 3)
  }

  @Test(arguments: TestStore.allCases) func `a look-up sees what another context has saved`(_ store: TestStore) throws {
    let (ours, theirs) = try store.makeKennelsOfTwo().twoContexts()
    #expect(try names(1, ours) == ["Fido"])
    let rex = try #require(try theirs.fetch(Dog.self) { $0.chip == 2 }.first)
    rex.chip = 5
    try theirs.save()
    theirs.dog("Max").chip = 2
    try theirs.save()
    #expect(try names(2, ours) == ["Max"] && names(5, ours) == ["Rex"])
    theirs.delete(rex)
    try theirs.save()
    #expect(try names(5, ours) == [])
  }

  @Test(arguments: QueryGenerationTests.stores) func `a look-up in a generation reads the generation`(_ store: TestStore) throws {
    let (ours, theirs) = try store.makeKennelsOfTwo().twoContexts()
    try ours.setQueryGeneration(from: .current)
    let fido = try #require(try theirs.fetch(Dog.self) { $0.chip == 1 }.first)
    fido.chip = 5
    fido.owner = try theirs.one(Person.self) { $0.name == "Bob" }
    try theirs.save()
    let before = try #require(try ours.fetch(Dog.self) { $0.chip == 1 }.first)
    #expect(before.owner?.name == "Ann" && before.owner?.dogs.count == 2)
    #expect(try names(5, ours) == [])
    try ours.setQueryGeneration(from: nil)
    #expect(try names(5, ours) == ["Fido"] && names(1, ours) == [])
  }

  @Test(arguments: TestStore.withChild) func `a look-up finds objects of subentities, and respects the fetched entity`(
    _ store: TestStore
  ) throws {
    let place = try store.makePlace(model: Menagerie.model, classes: Menagerie.classes), setup = try place.context()
    let keeper = setup.insert(Keeper.self)
    keeper.name = "Ann"
    let animals: [Animal] = [setup.animal(Bird.self, "Robin"), setup.animal(Parrot.self, "Polly"), setup.animal(Cat.self, "Tom")]
    for (number, animal) in animals.enumerated() {
      animal.chip = number
      animal.keeper = keeper
    }
    try setup.save()
    let context = try place.context()
    func names<Kind: Animal>(_ kind: Kind.Type, _ chip: Int64, includingSubentities: Bool = true) throws -> [String] {
      var request = FetchRequest<Kind>(where: FetchPredicate(.comparison(.property("chip"), .equalTo, .constant(.int64(chip)), [])))
      request.includesSubentities = includingSubentities
      return try context.fetch(request).map { "\($0.name), \(type(of: $0)) of \($0.keeper?.name ?? "nobody")" }
    }
    #expect(try names(Animal.self, 1) == ["Polly, Parrot of Ann"] && names(Bird.self, 1) == ["Polly, Parrot of Ann"])
    #expect(try names(Parrot.self, 0) == [] && names(Cat.self, 0) == [] && names(Bird.self, 0) == ["Robin, Bird of Ann"])
    #expect(try names(Bird.self, 1, includingSubentities: false) == [] && names(Animal.self, 2, includingSubentities: false) == [])
    #expect(try names(Animal.self, 2) == ["Tom, Cat of Ann"])
  }

  @Test(arguments: TestStore.withChild) func `equalities that aren't look-ups find the same objects`(_ store: TestStore) throws {
    let context = try store.makeKennelsOfTwo().context(), chip = QueryExpression.property("chip")
    context.dog("Max")
    try context.save()
    func names(_ expression: QueryExpression, limit: Int? = nil) throws -> [String] {
      let request = FetchRequest<Dog>(where: FetchPredicate(expression), sortedBy: [.ascending(\.name)], limit: limit)
      return try context.fetch(request).map(\.name)
    }
    let one = QueryExpression.constant(.int64(1))
    #expect(try names(.comparison(one, .equalTo, chip, [])) == ["Fido"])
    #expect(try names(.comparison(chip, .equalTo, .constant(.double(1)), [])) == ["Fido"])
    #expect(try names(.comparison(chip, .equalTo, .constant(.double(1.5)), [])) == [])
    #expect(try names(.comparison(chip, .equalTo, .constant(.null), [])) == ["Max"])
    #expect(try names(.comparison(chip, .equalTo, one, []), limit: 1) == ["Fido"])
    #expect(try names(.comparison(chip, .equalTo, one, []), limit: 0) == [])
    #expect(try names(.comparison(chip, .equalTo, chip, [])) == ["Fido", "Max", "Rex"])
    #expect(try names(.comparison(chip, .notEqualTo, one, [])) == ["Max", "Rex"])
    #expect(try context.count(Dog.self) { $0.chip == 1 } == 1)
    #expect(try context.fetchObjectIDs(Dog.self) { $0.chip == 1 }.count == 1)
  }

  @Test(arguments: TestStore.withChild) func `properties of every kind are looked up one after the other`(_ store: TestStore) throws {
    let context = try store.makeKennelsOfTwo().context()
    let dogs = try context.fetch(Dog.self, sortedBy: \.name), fido = dogs[0], rex = dogs[1]
    let owner = try #require(fido.owner), uid = UUID(), born = Date(timeIntervalSinceReferenceDate: 100)
    fido.born = born
    fido.uid = uid
    fido.weight = 2.5
    fido.price = 12
    fido.isGood = false
    rex.owner = nil
    try context.save()
    func finds(
      _ dogs: [Dog], @FetchPredicateBuilder<Dog> where conditions: (FetchPath<Dog, Dog>) -> FetchPredicate<Dog>
    ) throws -> Bool {
      try context.fetch(Dog.self, where: conditions) == dogs
    }
    for _ in 0..<2 {
      #expect(try finds([fido]) { $0.name == "Fido" })
      #expect(try finds([fido]) { $0.born == born })
      #expect(try finds([fido]) { $0.uid == uid })
      #expect(try finds([fido]) { $0.weight == 2.5 })
      #expect(try finds([fido]) { $0.price == 12 })
      #expect(try finds([fido]) { $0.isGood == false })
      #expect(try finds([fido]) { $0.owner == owner })
      #expect(try finds([fido]) { $0 == fido })
      #expect(try finds([rex]) { $0.owner == nil })
      #expect(try finds([rex]) { $0.name == "Rex" })
      #expect(try finds([]) { $0.weight == 2 })
    }
  }

  /// Hides that a store checks uniqueness.
  private final class UncheckedStore: ForwardingStore {
    let base: any IncrementalStore

    init(_ base: any IncrementalStore) { self.base = base }

    var capabilities: StoreCapabilities {
      var capabilities = base.capabilities
      capabilities.uniqueness = false
      return capabilities
    }
  }

  /// The bug: every save with a unique value read all rows of the entity.
  @Test(arguments: TestStore.allCases) func `a save looks up a few unique values in a store that doesn't check them`(
    _ store: TestStore
  ) throws {
    let (context, recorder) = try store.makeKennelsOfTwo().recording { UncheckedStore($0) }
    let fido = try #require(try context.fetch(Dog.self) { $0.chip == 1 }.first)
    func plansOfSave() throws -> [FetchPlan] {
      recorder.clear()
      try context.save()
      return recorder.requests.compactMap { request -> FetchPlan? in if case .fetch(let plan) = request { plan } else { nil } }
    }
    fido.chip = 7
    context.dog("Max").chip = 9
    let few = try plansOfSave(), looksUp = store != .weakest
    #expect(few.count == (looksUp ? 2 : 1) && few.allSatisfy { ($0.predicate != nil) == looksUp })
    for number in 0..<17 { context.dog("Dog \(number)").chip = Int64(100 + number) }
    #expect(try plansOfSave().map { $0.predicate == nil } == [true])
    // A value that the save frees can be used. One that another dog keeps is a conflict.
    fido.chip = nil
    let max = try #require(try context.fetch(Dog.self) { $0.chip == 9 }.first)
    max.chip = 7
    try context.save()
    let other = context.dog("Rex II")
    other.chip = 2
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .constraintConflict && error.objectIDs == [other.objectID])
  }

  @Test(arguments: TestStore.allCases) func `a look-up and its relationships send one request each`(_ store: TestStore) throws {
    let (context, recorder) = try store.makeKennelsOfTwo().recording()
    let fido = try #require(try context.fetch(Dog.self) { $0.chip == 1 }.first)
    #expect(recorder.requests.filter { if case .fetch = $0 { true } else { false } }.count == 1)
    recorder.clear()
    let owner = try #require(fido.owner)
    #expect(owner.name == "Ann")
    #expect(recorder.requests.filter { if case .rows = $0 { true } else { false } }.count == 1)
    recorder.clear()
    #expect(owner.dogs.map(\.name).sorted() == ["Fido", "Rex"])
    #expect(recorder.requests.filter { if case .relationships = $0 { true } else { false } }.count == 1)
  }
}
