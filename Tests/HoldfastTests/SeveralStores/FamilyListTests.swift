import Testing

@testable import Holdfast

/// To-many relationships whose objects are of several entities, read together from several stores.
@Suite struct FamilyListTests {
  /// A SQLite store returns only the keys of the animals, and other stores return their entities as well.
  @Test(arguments: StorePair.allCases) func listsOfSeveralStoresContainObjectsOfTheirOwnClasses(_ pair: StorePair) throws {
    let pack = try StorePack(pair.kinds, model: Menagerie.model)
    let setup = try ManagedObjectContext(coordinator: pack.coordinator, classes: Menagerie.classes)
    for (index, store) in pack.stores.enumerated() {
      let keeper = setup.insert(Keeper.self) { $0.name = "Keeper \(index)" }
      let cat = setup.animal(Cat.self, "Tom \(index)", keeper: keeper), bird = setup.animal(Bird.self, "Robin \(index)", keeper: keeper)
      for object in [keeper, cat, bird] as [ManagedObject] { try setup.assign(object, to: store) }
    }
    try setup.save()
    let context = try ManagedObjectContext(coordinator: pack.coordinator, classes: Menagerie.classes)
    let keepers = try context.fetch(FetchRequest<Keeper>(sortedBy: [.ascending(\.name)]))
    let animals = keepers.map { keeper in keeper.animals.map { "\(type(of: $0)) \($0.name)" }.sorted() }
    #expect(animals == [["Bird Robin 0", "Cat Tom 0"], ["Bird Robin 1", "Cat Tom 1"]])
    #expect(context.faultError == nil)
  }
}
