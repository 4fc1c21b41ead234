import FoundationEssentials
import Holdfast
import HoldfastStore
import Testing

/// A model with every kind of derived attribute for every kind of relationship.
enum Park {
  static let model: ManagedObjectModel = {
    do { return try ManagedObjectModel(entities: entities) } catch { fatalError("\(error)") }
  }()

  /// The same entities without derived attributes.
  static let plain: ManagedObjectModel = {
    let bare = entities.map { entity in
      var entity = entity
      entity.attributes.removeAll(where: \.isDerived)
      return entity
    }
    do { return try ManagedObjectModel(entities: bare) } catch { fatalError("\(error)") }
  }()

  private static let entities: [EntityDescription] = [
    EntityDescription(
      "Person", attributes: [AttributeDescription("name", .string, isOptional: true), .derived("dogCount", .integer16, "dogs.@count")],
      relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]),
    EntityDescription(
      "Dog",
      attributes: [
        AttributeDescription("name", .string, isOptional: true), .derived("canonicalName", .string, "canonical:(name)"),
        .derived("upperName", .string, "uppercase:(name)"), .derived("lowerName", .string, "lowercase:(name)"),
        .derived("nameCopy", .string, "name"), .derived("changed", .date, "now()"), .derived("walkCount", .integer64, "walks.@count"),
        .derived("minutes", .integer32, "walks.minutes.@sum"), .derived("cost", .decimal, "walks.cost.@sum"),
        .derived("distance", .double, "walks.distance.@sum"), .derived("trickCount", .integer16, "tricks.@count"),
        .derived("difficulty", .integer64, "tricks.level.@sum"), .derived("ease", .double, "tricks.ease.@sum"),
        .derived("toyCount", .integer64, "toys.@count"), .derived("toyPrice", .decimal, "toys.price.@sum"),
        .derived("billCount", .integer64, "bills.@count"), .derived("sitterCount", .integer64, "sitters.@count"),
        .derived("sitterAges", .integer64, "sitters.age.@sum"), .derived("friendCount", .integer64, "friends.@count"),
        .derived("ownerName", .string, "owner.name"), .derived("loudOwner", .string, "uppercase:(owner.name)"),
        .derived("breedName", .string, "breed.name"), .derived("collarColour", .string, "collar.colour"),
      ],
      relationships: [
        .toOne("owner", to: "Person", inverse: "dogs"), .toMany("walks", to: "Walk", inverse: "dog", deleteRule: .cascade),
        .toMany("tricks", to: "Trick", inverse: "dogs"), .toMany("toys", to: "Toy", inverse: nil),
        .toOne("breed", to: "Breed", inverse: nil),
        .toOne("collar", to: "Collar", inverse: "dog"), .toMany("bills", to: "Bill", inverse: "dog", deleteRule: .noAction),
        .toMany("sitters", to: "Sitter", inverse: "charges", deleteRule: .noAction), .toMany("friends", to: "Dog", inverse: "friends"),
      ]),
    EntityDescription(
      "Walk",
      attributes: [
        AttributeDescription("minutes", .integer32, isOptional: true), AttributeDescription("cost", .decimal, isOptional: true),
        AttributeDescription("distance", .double, isOptional: true), .derived("dogName", .string, "dog.name"),
        .derived("walker", .string, "dog.owner.name"), .derived("colour", .string, "dog.collar.colour"),
      ], relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
    EntityDescription(
      "LongWalk", superentity: "Walk",
      attributes: [AttributeDescription("rests", .integer16, isOptional: true), .derived("breed", .string, "canonical:(dog.breed.name)")]),
    EntityDescription(
      "Trick",
      attributes: [
        AttributeDescription("level", .integer32, isOptional: true), AttributeDescription("ease", .double, isOptional: true),
        .derived("dogCount", .integer64, "dogs.@count"),
      ], relationships: [.toMany("dogs", to: "Dog", inverse: "tricks")]),
    EntityDescription("Toy", attributes: [AttributeDescription("price", .integer32, isOptional: true)]),
    EntityDescription("Breed", attributes: [AttributeDescription("name", .string, isOptional: true)]),
    EntityDescription(
      "Collar", attributes: [AttributeDescription("colour", .string, isOptional: true), .derived("wearer", .string, "dog.name")],
      relationships: [.toOne("dog", to: "Dog", inverse: "collar")]),
    EntityDescription(
      "Bill", attributes: [AttributeDescription("sum", .integer32, isOptional: true), .derived("payer", .string, "dog.name")],
      relationships: [.toOne("dog", to: "Dog", inverse: "bills", deleteRule: .noAction)]),
    EntityDescription(
      "Sitter",
      attributes: [AttributeDescription("age", .integer16, isOptional: true), .derived("chargeCount", .integer64, "charges.@count")],
      relationships: [.toMany("charges", to: "Dog", inverse: "sitters", deleteRule: .noAction)]),
  ]
}

extension ManagedObject {
  /// A property by its name. The models are correct, so a wrong name is an error in the test.
  subscript(_ name: String) -> StoreValue {
    get { (try? value(forKey: name).storeValue) ?? .string("no \(name)") }
    set {
      do { try setValue(newValue, forKey: name) } catch { Issue.record("\(error)") }
    }
  }

  /// Sets a to-one relationship.
  func lead(_ name: String, to target: ManagedObject?) {
    guard let relationship = entity.relationship(named: name) else {
      Issue.record("\(name) isn't a relationship.")
      return
    }
    setToOne(relationship.slot, target)
  }

  func many(_ name: String) -> ToMany<ManagedObject> {
    do { return try toMany(forKey: name) } catch { fatalError("\(error)") }
  }
}

extension ManagedObjectContext {
  @discardableResult
  func make(_ entity: String, _ values: [String: StoreValue] = [:], dog: ManagedObject? = nil) -> ManagedObject {
    do {
      let object = try insert(entityNamed: entity)
      for (name, value) in values { object[name] = value }
      if let dog { object.lead("dog", to: dog) }
      return object
    } catch { fatalError("\(error)") }
  }

  func all(_ entity: String) throws -> [ManagedObject] {
    try fetch(FetchRequest<ManagedObject>(entityName: entity)).sorted { $0.objectID.key < $1.objectID.key }
  }
}

extension TestStore {
  func park(_ model: ManagedObjectModel = Park.model) throws -> Place { try makePlace(model: model, classes: []) }
}

/// Recomputes derived values, using only the relationships of a context's objects.
struct Scratch {
  let context: ManagedObjectContext
  private let existing: Set<ManagedObjectID>

  init(_ context: ManagedObjectContext) throws {
    self.context = context
    existing = Set(try context.persistentStoreCoordinator.model.entities.flatMap { try context.all($0.name).map(\.objectID) })
  }

  /// Every wrong derived value.
  func differences() throws -> [String] {
    var found: [String] = []
    for entity in context.persistentStoreCoordinator.model.entities {
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name)) { found += try differences(of: object) }
    }
    return found
  }

  func differences(of object: ManagedObject) throws -> [String] {
    try object.entity.derivedAttributes.compactMap { attribute in
      guard let expected = try expected(object, attribute) else { return nil }
      let got = object[attribute.name]
      return got == expected ? nil : "\(object).\(attribute.name) is \(got), not \(expected)"
    }
  }

  /// Nil for the date of a save, which is unknown.
  private func expected(_ object: ManagedObject, _ attribute: ManagedObjectModel.Attribute) throws -> StoreValue? {
    switch attribute.derivation {
    case nil, .now: return nil
    case .copy(let path): return try value(object, path)
    case .text(let function, let path):
      guard case .string(let text) = try value(object, path) else { return .null }
      switch function {
      case .uppercase: return .string(text.uppercased())
      case .lowercase: return .string(text.lowercased())
      case .canonical:
        return .string(String(decoding: TextFolding([.caseInsensitive, .diacriticInsensitive]).fold(text), as: UTF8.self))
      }
    case .count(let relationship): return StoreValue.int64(Int64(targets(object, relationship).count)).converted(to: attribute.type)
    case .sum(let relationship, let summed):
      let values = targets(object, relationship).map { $0[summed] }
      switch attribute.type {
      case .decimal:
        return .decimal(
          values.reduce(0) { sum, value in if case .decimal(let number) = value { sum + number } else { sum + Decimal(value.integer ?? 0) }
          })
      case .double:
        var sum = ExactSum()
        for value in values { sum.add(value.real ?? 0) }
        return .double(sum.value)
      default: return StoreValue.int64(values.reduce(0) { $0 + ($1.integer ?? 0) }).converted(to: attribute.type)
      }
    }
  }

  private func targets(_ object: ManagedObject, _ relationship: String) -> [ManagedObject] {
    object.many(relationship).filter { existing.contains($0.objectID) }.sorted { $0.objectID.key < $1.objectID.key }
  }

  private func value(_ object: ManagedObject, _ path: PropertyPath) throws -> StoreValue {
    var object = object
    for name in path.names.dropLast() {
      guard case .objectID(let id) = object[name], existing.contains(id) else { return .null }
      object = try context.existingObject(with: id)
    }
    return object[path.names[path.names.count - 1]]
  }
}

extension TestStore.Place {
  /// Expects that every derived value in the store is correct.
  func expectRight(_ when: String, _ location: SourceLocation = #_sourceLocation) throws {
    let context = try context()
    let differences = try Scratch(context).differences()
    #expect(differences.isEmpty, "\(when) on \(store)", sourceLocation: location)
  }
}
