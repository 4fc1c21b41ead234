import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStoreConformance
import HoldfastXMLStore
import TestSupport
import Testing

/// Small conveniences of every day.
@Suite struct EverydayTests {
  @Test(arguments: TestStore.withChild) func aRegisteredObjectIsFoundWithoutARequest(_ store: TestStore) throws {
    let place = try store.makePlace(), filling = try place.context()
    let id = filling.dog("Fido")
    try filling.save()
    let (context, recorder) = try place.recording()
    #expect(context.registeredObject(for: id.objectID) == nil)
    let dog = try #require(try context.fetchOne(Dog.self))
    recorder.clear()
    #expect(context.registeredObject(for: dog.objectID) === dog && recorder.requests.isEmpty)
    let new = context.dog("Rex")
    #expect(context.registeredObject(for: new.objectID) === new)
  }

  @Test(arguments: TestStore.withChild) func aDumpShowsValuesToTheGivenDepth(_ store: TestStore) throws {
    let place = try store.makePlace(), filling = try place.context()
    let fido = filling.dog("Fido", age: 3, owner: filling.person("Ann"))
    fido.notes = String(repeating: "long ", count: 20)
    fido.friends.insert(filling.dog("Rex"))
    try filling.save()
    let context = try place.context(), dog = try #require(try context.fetchOne(Dog.self) { $0.name == "Fido" })
    let flat = dog.dump().split(separator: "\n").map(String.init)
    #expect(flat.first == dog.description && flat.contains("  age: 3") && flat.contains("  name: \"Fido\"") && flat.contains("  chip: nil"))
    #expect(flat.contains { $0.hasPrefix("  notes: \"long long") && $0.hasSuffix("…") && $0.count < 75 })
    #expect(flat.contains("  owner: \(try #require(dog.owner).objectID.uriRepresentation)") && flat.contains("  vaccinations: none"))
    let deep = dog.dump(depth: 1)
    #expect(deep.contains("      name: \"Ann\"") && deep.contains("      name: \"Rex\"") && !flat.contains { $0.contains("Ann") })
    // Friends of friends include the dog itself.
    #expect(dog.dump(depth: 2).contains("(shown above)"))
  }

  /// The bug: a chain of some thousand objects exhausted the stack.
  @Test func aDumpFollowsAtMostThirtyTwoRelationships() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Step", relationships: [.toOne("after", to: "Step", inverse: "before"), .toOne("before", to: "Step", inverse: "after")])
    ])
    let context = try TestStore.memory.makePlace(model: model, classes: []).context()
    let steps = try (0..<5_000).map { _ in try context.insert(entityNamed: "Step") }
    for (step, next) in zip(steps, steps.dropFirst()) { try step.setValue(next, forKey: "after") }
    let lines = steps[0].dump(depth: .max).split(separator: "\n")
    #expect(lines.map { line in line.prefix { $0 == " " }.count }.max() == 32 * 4 + 2)
    #expect(steps[0].dump(depth: -1) == steps[0].dump())
  }

  /// The bug: on Linux, the description of a date that is NaN ended the process.
  @Test func aDumpShowsDatesOfAnySize() throws {
    let context = try TestStore.memory.makePlace().context(), dog = context.dog("Fido")
    for seconds in [Double.nan, .infinity, -.infinity, 1e300, -1e18] {
      dog.born = Date(timeIntervalSinceReferenceDate: seconds)
      #expect(dog.dump().contains("  born: \(seconds) seconds since 2001"))
    }
    dog.born = Date(timeIntervalSinceReferenceDate: 0)
    #expect(dog.dump().contains("  born: 2001-01-01 00:00:00 +0000"))
  }

  @Test func storeValuesAreLiterals() throws {
    let values: [StoreValue] = [3, 2.5, "text", true]
    #expect(values == [.int64(3), .double(2.5), .string("text"), .bool(true)])
    let context = try TestStore.memory.makePlace().context(), dog = context.dog("Fido")
    try dog.setValue(7, forKey: "age")
    try dog.setValue("Rex", forKey: "name")
    try dog.setValue(12.5, forKey: "weight")
    #expect(dog.age == 7 && dog.name == "Rex" && dog.weight == 12.5)
  }

  @Test(arguments: TestStore.withChild) func valuesAndObjectsAreSetByName(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context(), dog = context.dog("Fido"), ann = context.person("Ann")
    let born = Date(timeIntervalSinceReferenceDate: 86_400.5), uid = UUID(), price = try #require(Decimal(string: "0.1"))
    try dog.setValue(born, forKey: "born")
    try dog.setValue(uid, forKey: "uid")
    try dog.setValue(price, forKey: "price")
    try dog.setValue(ann, forKey: "owner")
    try dog.setValue([context.dog("Rex")], forKey: "friends")
    #expect(dog.owner === ann && ann.dogs.contains(dog) && dog.friends.map(\.name) == ["Rex"])
    try context.save()
    let other = try place.context(), read = try #require(try other.fetchOne(Dog.self) { $0.name == "Fido" })
    #expect(read.born == born && read.uid == uid && read.price == price && read.owner?.name == "Ann" && read.friends.count == 1)
    #expect(try read.value(forKey: "born") == .single(.date(born)))
    #expect(StoreValue.date(born) == .date(86_400.5) && StoreValue.date(born).date == born && StoreValue.int64(3).date == nil)
    let error = #expect(throws: PersistenceError.self) { try read.setValue(ann, forKey: "owner") }
    #expect(error?.code == .foreignObject && read.owner?.name == "Ann")
    try read.setValue(nil as Person?, forKey: "owner")
    #expect(read.owner == nil)
  }

  @Test func storesAreAtPathsOrURLsAndCanBeReadOnly() throws {
    let folder = TemporaryFolder()
    let makers: [(String, (any StorePath, Bool) -> StoreDescription)] = [
      ("json", { .json(at: $0, isReadOnly: $1) }), ("xml", { .xml(at: $0, isReadOnly: $1) }),
      ("binary", { .binary(at: $0, isReadOnly: $1) }), ("sqlite", { .sqlite(at: $0, isReadOnly: $1) }),
    ]
    for (name, make) in makers {
      let path = folder.file("a file.\(name)"), url = URL(fileURLWithPath: path)
      do {
        let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: make(url, false))
        let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
        context.dog("Fido")
        try context.save()
        try coordinator.close()
      }
      #expect(FileManager.default.fileExists(atPath: path), "\(name)")
      let coordinator = try PersistentStoreCoordinator(model: Kennel.model, store: make(path, true))
      let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
      #expect(try context.count(Dog.self) == 1, "\(name)")
      context.dog("Rex")
      let error = #expect(throws: StoreError.self, "\(name)") { try context.save() }
      #expect(error?.code == .readOnly, "\(name)")
      try coordinator.close()
    }
  }

  @Test func requestsArePrintedAsText() throws {
    let predicate = FetchPredicate<Dog> { $0.age > 3 && $0.owner.name == "Ann" }
    #expect("\(predicate)" == "\(predicate.expression)" && "\(predicate)".contains("age > 3"))
    let sort = FetchSortDescriptor<Dog>.descending(\.owner.name)
    #expect("\(sort)" == "owner.name descending")
    let request = FetchRequest<Dog>(where: predicate, sortedBy: [sort, .ascending(\.age)], offset: 2, limit: 10)
    #expect("\(request)" == "Dog where \(predicate) sorted by owner.name descending, age ascending offset 2 limit 10")
    #expect("\(FetchRequest<Dog>())" == "Dog")
  }

  @Test func aDestroyedContainerLeavesNothingBehind() throws {
    let folder = TemporaryFolder()
    for store in [
      StoreDescription.sqlite(at: folder.file("dogs.sqlite")), .binary(at: folder.file("dogs.binary")), .json(at: folder.file("dogs.json")),
      .xml(at: folder.file("dogs.xml")), .memory(named: "dogs"),
    ] {
      let container = try PersistentContainer(model: Kennel.model, classes: Kennel.classes, store: store)
      container.newBackgroundContext().performAndWait { context in
        context.dog("Fido")
        #expect(throws: Never.self) { try context.save() }
      }
      try container.destroy()
    }
    // The lock file of a store that is one file outlasts it.
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { !$0.hasSuffix("lock") }.isEmpty)
  }
}
