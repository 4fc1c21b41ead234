import FoundationEssentials
import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// Models with equal version hashes but different row layouts. Core Data's hashes don't distinguish them; stores do.
@Suite struct ModelLayoutTests {
  struct Pair: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var made: ManagedObjectModel
    var other: ManagedObjectModel
  }

  private static func model(
    _ attributes: [AttributeDescription], _ elements: [AttributeDescription] = [], inverse: String? = nil
  ) -> ManagedObjectModel {
    do {
      return try ManagedObjectModel(
        entities: [
          EntityDescription("Beside", attributes: [AttributeDescription("name", .string, isOptional: true)]),
          EntityDescription(
            "Thing", attributes: [AttributeDescription("name", .string, isOptional: true)] + attributes,
            relationships: [.toMany("friends", to: "Thing", inverse: inverse)]),
        ], composites: [CompositeDescription("Group", elements)])
    } catch { fatalError("\(error)") }
  }

  private static func data(external: Bool = false, preserved: Bool = false) -> AttributeDescription {
    var attribute = AttributeDescription("data", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: external)
    attribute.preservesValueInHistoryOnDeletion = preserved
    return attribute
  }

  static let pairs: [Pair] = [
    Pair(testDescription: "preserved and external", made: model([data(preserved: true)]), other: model([data(external: true)])),
    Pair(
      testDescription: "external and external and preserved", made: model([data(external: true)]),
      other: model([data(preserved: true)])),
    Pair(
      testDescription: "one more element",
      made: model([.composite("place", "Group", isOptional: true)], [AttributeDescription("x", .double)]),
      other: model(
        [.composite("place", "Group", isOptional: true)], [AttributeDescription("x", .double), AttributeDescription("y", .double)])),
    Pair(
      testDescription: "an element of another type",
      made: model([.composite("place", "Group", isOptional: true)], [AttributeDescription("x", .double)]),
      other: model([.composite("place", "Group", isOptional: true)], [AttributeDescription("x", .string)])),
    Pair(
      testDescription: "a derived attribute of another name", made: model([.derived("upper", .string, "uppercase:(name)")]),
      other: model([.derived("uppercase", .string, "uppercase:(name)")])),
    Pair(
      testDescription: "a derived attribute of another type", made: model([.derived("count", .integer16, "friends.@count")]),
      other: model([.derived("count", .integer64, "friends.@count")])),
    Pair(testDescription: "its own inverse and none", made: model([], inverse: "friends"), other: model([])),
    Pair(testDescription: "none and its own inverse", made: model([]), other: model([], inverse: "friends")),
  ]

  @Test(arguments: TestStore.allCases, pairs) func aModelWithAnotherRowLayoutIsRefused(_ store: TestStore, _ pair: Pair) throws {
    #expect(pair.made.entityVersionHashesByName == pair.other.entityVersionHashesByName)
    let place = try store.makePlace(model: pair.made, classes: []), context = try place.context()
    _ = try context.insert(entityNamed: "Thing").setValue(.string("A"), forKey: "name")
    try context.save()
    try place.close()
    if place.description.administration.supports(MetadataRequest.self) {
      let metadata = try PersistentStoreCoordinator.metadata(for: place.description)
      #expect(metadata.isCompatible(with: pair.made) && !metadata.isCompatible(with: pair.other))
    }
    let description = place.description.migrating(automatically: false)
    let error = try #require(throws: StoreError.self) { try PersistentStoreCoordinator(model: pair.other, store: description) }
    #expect(error.code == .incompatibleModel && error.coreDataCode == 134_100)
    #expect(error.reason.contains("Thing") && !error.reason.contains("Beside"))
    // Nothing was changed, and differences that don't affect rows are allowed.
    let again = try place.context()
    #expect(
      try again.fetch(FetchRequest<ManagedObject>(entityName: "Thing")).map { try $0.value(forKey: "name").storeValue } == [.string("A")])
  }

  @Test func mostModelsHaveNothingThatHashesDoNotTell() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Dog", attributes: [AttributeDescription("name", .string, default: .string("Rex"))])
    ])
    #expect(model.entityLayoutHashesByName.isEmpty && model.layoutDigest.isEmpty)
  }
}
