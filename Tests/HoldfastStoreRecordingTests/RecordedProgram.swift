import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStoreConformance
import HoldfastStoreRecording
import LogStore
import TestSupport

/// The types of stores that tests record and replay.
enum StoreKind: String, CaseIterable, Sendable {
  case memory, sqlite, json, log, minimal

  /// Half of the stores, from a random one, or all in the full tier. A difference is reported with the store.
  static var share: [StoreKind] {
    let step = TestTier.step(2), first = Int.random(in: 0..<step)
    return stride(from: first, to: allCases.count, by: step).map { allCases[$0] }
  }

  /// Describes a new store.
  func make(in folder: TemporaryFolder) -> StoreDescription {
    let path = folder.file("\(UUID().uuidString).\(rawValue)")
    return switch self {
    case .memory: .memory(contents: MemoryStoreContents())
    case .sqlite: .sqlite(at: path)
    case .json: .json(at: path)
    case .log: .log(at: path)
    case .minimal: MinimalStore.description()
    }
  }
}

/// A program that uses a store in every way, for recordings.
struct RecordedProgram {
  static let model = Result {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Person",
        attributes: [
          AttributeDescription("name", .string, isOptional: true), AttributeDescription("age", .integer16, isOptional: true),
          AttributeDescription("weight", .double, isOptional: true), AttributeDescription("wealth", .decimal, isOptional: true),
          AttributeDescription("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
          AttributeDescription("favourite", .objectID, isOptional: true),
        ],
        relationships: [
          .toMany("friends", to: "Person", inverse: "friendOf"), .toMany("friendOf", to: "Person", inverse: "friends"),
          .toOne("house", to: "House", inverse: "people"), .toMany("pets", to: "Pet", inverse: nil),
        ]),
      EntityDescription("Child", superentity: "Person", attributes: [AttributeDescription("school", .string, isOptional: true)]),
      EntityDescription(
        "House", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [.toMany("people", to: "Person", inverse: "house", isOrdered: true)]),
      EntityDescription("Pet", attributes: [AttributeDescription("name", .string, isOptional: true)], uniquenessConstraints: [["name"]]),
    ])
  }

  let coordinator: PersistentStoreCoordinator
  let context: ManagedObjectContext

  init(_ description: StoreDescription) throws {
    coordinator = try PersistentStoreCoordinator(model: Self.model.get(), store: description)
    context = try ManagedObjectContext(coordinator: coordinator)
  }

  // MARK: A program that is always the same

  /// Inserts, reads, changes and deletes objects, and runs into a conflict of versions and one of unique values.
  func run() throws {
    try insert()
    try query(context)
    try change()
    try conflict()
    try violateUniqueness()
    try query(ManagedObjectContext(coordinator: coordinator))
    try coordinator.setMetadata(["purpose": .string("a test")])
    try coordinator.close()
  }

  func insert() throws {
    let houses = try (0..<2).map { try object("House", "House \($0)") }
    let people = try (0..<30).map { number in
      let person = try object(number % 5 == 0 ? "Child" : "Person", number == 7 ? "e\u{301}" : "Person \(number)")
      try person.setValue(.int16(Int16(number % 9)), forKey: "age")
      try person.setValue(.double(Double(number) / 3), forKey: "weight")
      try person.setValue(.decimal(Decimal(number) / 8), forKey: "wealth")
      try person.setValue(.data(Data(repeating: UInt8(number), count: number == 4 ? 200_000 : number)), forKey: "photo")
      try person.setValue(.objectID(houses[number % 2].objectID), forKey: "house")
      return person
    }
    let pets = try (0..<6).map { try object("Pet", "Pet \($0)") }
    for (index, person) in people.enumerated() {
      try person.setValue([people[(index + 1) % 30], people[(index + 2) % 30]], forKey: "friends")
    }
    for (index, pet) in pets.enumerated() { try people[index].setValue([pet], forKey: "pets") }
    try context.save()
    try people[0].setValue(.objectID(people[1].objectID), forKey: "favourite")
    try people[5].setValue(.objectID(houses[0].objectID), forKey: "favourite")
    try context.save()
  }

  /// Reads with every kind of request.
  func query(_ context: ManagedObjectContext) throws {
    context.reset()
    let byAge = FetchSortDescriptor<ManagedObject>(SortTerm("age", isAscending: false))
    let isOld = FetchPredicate<ManagedObject>(.comparison(.property("age"), .greaterThan, .constant(.int16(3)), []))
    let sorted = try context.fetch(FetchRequest(entityName: "Person", where: isOld, sortedBy: [byAge], offset: 1, limit: 7))
    guard let house = try context.fetch(FetchRequest<ManagedObject>(entityName: "House")).first else { return }
    let lives = FetchPredicate<ManagedObject>(.comparison(.property("house"), .equalTo, .constant(.objectID(house.objectID)), []))
    for person in try context.fetch(FetchRequest(entityName: "Person", where: lives)) {
      _ = try person.value(forKey: "friends").objects?.count
      _ = try person.value(forKey: "pets").objects?.count
      _ = try person.value(forKey: "photo")
    }
    _ = try house.value(forKey: "people").objects?.count
    _ = try sorted.first?.value(forKey: "friendOf").objects?.count
    let hasFriend = FetchPredicate<ManagedObject>(
      .any("friends", .comparison(.property("house.name"), .equalTo, .constant(.string("House 1")), [])))
    _ = try context.count(for: FetchRequest(entityName: "Person", where: hasFriend))
    _ = try context.fetchObjectIDs(FetchRequest(entityName: "Child", where: isOld))
    _ = try context.fetch(
      DictionaryFetchRequest<ManagedObject>(
        entityName: "Person", columns: ["age": .property("age"), "weight": .average("weight"), "count": .count()], groupedBy: ["age"]))
  }

  private func change() throws {
    let people = try all("Person", context), houses = try all("House", context)
    for person in people.prefix(10) { try person.setValue(.string("Renamed"), forKey: "name") }
    try people[12].setValue([], forKey: "friends")
    try people[13].setValue(.null, forKey: "house")
    try people[14].setValue(.data(Data([1, 2, 3])), forKey: "photo")
    try houses[0].setValue(Array(houses[0].value(forKey: "people").objects?.reversed() ?? []), forKey: "people")
    context.delete(people[20])
    context.delete(people[4])
    try context.save()
    context.delete(houses[1])
    try context.save()
  }

  private func conflict() throws {
    let other = try ManagedObjectContext(coordinator: coordinator)
    let (first, second) = (try all("Person", context)[2], try all("Person", other)[2])
    try first.setValue(.string("First"), forKey: "name")
    try second.setValue(.string("Second"), forKey: "name")
    try other.save()
    do {
      try context.save()
      throw StoreError(.general, operation: "test", reason: "The conflict wasn't found.")
    } catch is PersistenceError { context.rollback() }
  }

  private func violateUniqueness() throws {
    _ = try object("Pet", "Pet 3")
    do {
      try context.save()
      throw StoreError(.general, operation: "test", reason: "The violation wasn't found.")
    } catch is PersistenceError { context.rollback() }
  }

  // MARK: A random program

  /// Makes random changes, saves them and reads.
  func runRandomly(_ random: inout SeededGenerator) throws {
    for _ in 0..<15 {
      let people = try all("Person", context), houses = try all("House", context), pets = try all("Pet", context)
      let (a, b) = (people.randomElement(using: &random), people.randomElement(using: &random))
      let (house, pet) = (houses.randomElement(using: &random), pets.randomElement(using: &random))
      let kind = random.next() % 10
      switch kind {
      case 0, 1, 2, 3:
        let object = try object(["Person", "Child", "House", "Pet"][Int(kind)], String(random.next(), radix: 36))
        if kind < 2, let house { try object.setValue(.objectID(house.objectID), forKey: "house") }
      case 4: try a?.setValue(.string(String(random.next(), radix: 36)), forKey: "name")
      case 5: if let a, let b { try a.setValue(Array(Set(objects(a, "friends")).union([b])), forKey: "friends") }
      case 6: if let a, let house { try a.setValue(.objectID(house.objectID), forKey: "house") }
      case 7: if let a, let pet, try !objects(a, "pets").contains(pet) { try a.setValue([pet], forKey: "pets") }
      case 8: if let house { try house.setValue(Array(objects(house, "people").reversed().dropLast()), forKey: "people") }
      default: if let object = [a, house, pet][Int(random.next() % 3)] { context.delete(object) }
      }
      if random.next() % 4 == 0 { try context.save() }
      if random.next() % 4 == 0 { context.rollback() }
    }
    try context.save()
    context.reset()
    for person in try all("Person", context) { _ = try (objects(person, "friends").count, objects(person, "pets").count) }
    let byName = FetchSortDescriptor<ManagedObject>(SortTerm("name"))
    _ = try context.fetch(FetchRequest<ManagedObject>(entityName: "Person", sortedBy: [byName], offset: 2, limit: 5))
  }

  private func object(_ entity: String, _ name: String) throws -> ManagedObject {
    let object = try context.insert(entityNamed: entity)
    try object.setValue(.string(name), forKey: "name")
    return object
  }

  private func all(_ entity: String, _ context: ManagedObjectContext) throws -> [ManagedObject] {
    try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).sorted { $0.objectID.key < $1.objectID.key }
  }

  private func objects(_ object: ManagedObject, _ key: String) throws -> [ManagedObject] { try object.value(forKey: key).objects ?? [] }
}
