import HoldfastStore
import Testing

@testable import Holdfast

/// References to an object of an entity that the relationship doesn't allow, which a damaged file may contain.
///
/// Dogs and cats share a root, so their keys don't distinguish them. A walk references a cat. The cat's colour is in the slot in which dogs
/// have their kennel.
@Suite struct StrayReferenceTests {
  /// Not XML, which refuses such a file.
  private static let stores: [TestStore] = [.memory, .json, .binary, .sqlite, .weakest]

  private func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription("Animal", isAbstract: true, attributes: [AttributeDescription("name", .string, isOptional: true)]),
      EntityDescription("Cat", superentity: "Animal", attributes: [AttributeDescription("colour", .string, isOptional: true)]),
      EntityDescription(
        "Dog", superentity: "Animal", attributes: [AttributeDescription("kennel", .string, isOptional: true)],
        relationships: [
          .toMany("walks", to: "Walk", inverse: "dog"), .toMany("walkers", to: "Person", inverse: "dogs"),
          .toMany("queues", to: "Person", inverse: "queue"),
        ]),
      EntityDescription(
        "Person",
        relationships: [
          .toMany("dogs", to: "Dog", inverse: "walkers"), .toMany("queue", to: "Dog", inverse: "queues", isOrdered: true),
        ]),
      EntityDescription(
        "Walk",
        attributes: [AttributeDescription("minutes", .integer32, isOptional: true), .derived("kennel", .string, "dog.kennel")],
        relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
    ])
  }

  /// A store with a black cat, and a walk that references it.
  private func makePlace(_ kind: TestStore) throws -> TestStore.Place {
    let place = try kind.makePlace(model: model(), classes: []), store = place.description.makeStore()
    let identity = try store.open(model: place.model, host: .none).identity
    func inserted(_ name: String, _ values: [String: StoreValue]) throws -> (changes: SaveRequest.EntityChanges, key: ObjectKey) {
      let entity = try #require(place.model.entity(named: name)), builder = RowBatchBuilder(entity: entity, identity: identity)
      let key = try store.reserveKeys(entity: entity.index, count: 1)[0]
      try builder.append(key: key, version: 1, values: entity.slots.map { values[$0.name] ?? .null })
      var changes = SaveRequest.EntityChanges(entity: entity.index)
      changes.inserted = [builder.seal()]
      return (changes, key)
    }
    let cat = try inserted("Cat", ["name": .string("Tom"), "colour": .string("black")])
    let walk = try inserted("Walk", ["dog": .key(cat.key)])
    let changes = [cat.changes, walk.changes].sorted { $0.entity < $1.entity }
    _ = try store.prepare(SaveRequest(entities: changes), options: .none).commit()
    try store.close()
    return place
  }

  private func object(_ entity: String, _ context: ManagedObjectContext) throws -> ManagedObject {
    try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).first)
  }

  /// The bug: the copy was the cat's colour. With a number in its place, memory outside the row was read.
  @Test(arguments: stores) func aDerivedCopyDoesNotReadTheSlotOfAnotherEntity(_ store: TestStore) throws {
    let place = try makePlace(store), context = try place.context(), walk = try object("Walk", context)
    try walk.setValue(.int32(5), forKey: "minutes")
    try context.save()
    #expect(try object("Walk", place.context()).value(forKey: "kennel") == .single(.null))
  }

  /// The bug: the condition was tested with the cat's colour.
  @Test(arguments: stores) func aQueryThatIncludesChangesDoesNotReadTheSlotOfAnotherEntity(_ store: TestStore) throws {
    let context = try makePlace(store).context(), cat = try object("Cat", context)
    #expect(try cat.value(forKey: "colour") == .single(.string("black")))
    // An unsaved dog makes the context evaluate the condition.
    try context.insert(entityNamed: "Dog").setValue(.string("north"), forKey: "kennel")
    let isBlack = FetchPredicate<ManagedObject>(.comparison(.property("dog.kennel"), .equalTo, .constant(.string("black")), []))
    #expect(try context.fetch(FetchRequest(entityName: "Walk", where: isBlack)).isEmpty)
    withExtendedLifetime(cat) {}
  }

  /// Adds an object to the lists of each object of an entity.
  private final class StrayStore: ForwardingStore {
    let base: any IncrementalStore
    private let entity: EntityIndex
    private let stray: ObjectKey

    init(_ base: any IncrementalStore, _ entity: EntityIndex, _ stray: ObjectKey) {
      (self.base, self.entity, self.stray) = (base, entity, stray)
    }

    func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
      let answer = try base.relationships(request, in: view, options: options)
      if request.entity != entity || request.sources.count != 1 { return answer }
      let targets = answer.targets + [stray]
      return RelationshipAnswer(
        offsets: [0, Int32(targets.count)], targets: targets, orderKeys: answer.orderKeys.map { $0 + [($0.max() ?? 0) + 1] })
    }
  }

  /// The bug: a list with a new object left out the cat in an iteration, but counted it.
  @Test(arguments: stores) func anIterationIsAsLongAsTheListAlsoWithNewObjects(_ store: TestStore) throws {
    let place = try store.makePlace(model: model(), classes: []), filling = try place.context()
    let (dog, person) = (try filling.insert(entityNamed: "Dog"), try filling.insert(entityNamed: "Person"))
    let stray = try filling.insert(entityNamed: "Cat")
    for key in ["dogs", "queue"] { try person.setValue([dog], forKey: key) }
    try filling.save()
    let (entity, key) = (person.flags.entityIndex, stray.objectKey)
    let (context, _) = try place.recording { StrayStore($0, entity, key) }
    let (owner, cat, new) = (try object("Person", context), try object("Cat", context), try context.insert(entityNamed: "Dog"))
    func index(_ name: String) throws -> Int { try #require(owner.entity.relationship(named: name)).toManyIndex }
    let dogs = ToMany<ManagedObject>(owner: owner, index: try index("dogs"))
    let queue = OrderedToMany<ManagedObject>(owner: owner, index: try index("queue"))
    #expect(dogs.count == 2 && dogs.map { $0 }.count == 2 && queue.count == 2 && queue.map { $0 }.count == 2)
    dogs.insert(new)
    queue.append(new)
    #expect(dogs.count == 3 && dogs.map { $0 }.count == 3)
    #expect(queue.count == 3 && queue.map { $0 }.count == 3)
    withExtendedLifetime(cat) {}
  }

  /// The bug: SQLite tested the condition with the cat's name.
  @Test(arguments: stores) func aQueryDoesNotReadAnInheritedSlotOfAnotherEntity(_ store: TestStore) throws {
    let context = try makePlace(store).context()
    let isTom = FetchPredicate<ManagedObject>(.comparison(.property("dog.name"), .equalTo, .constant(.string("Tom")), []))
    #expect(try context.fetch(FetchRequest(entityName: "Walk", where: isTom)).isEmpty)
  }
}
