import Foundation
import HoldfastStore
import Testing

@Suite struct IndexTests {
  @Test func anIndexIsEncodedAsAnInteger() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let plan = FaultRequest(entity: 3, keys: [7])
    let json = try encoder.encode(plan)
    #expect(String(decoding: json, as: UTF8.self) == #"{"entity":3,"keys":[7]}"#)
    #expect(try JSONDecoder().decode(FaultRequest.self, from: json) == plan)
    #expect(String(decoding: try encoder.encode(ColumnType.toOne(destination: 2)), as: UTF8.self) == #"{"toOne":{"destination":2}}"#)
    let request = RelationshipRequest(entity: 1, relationship: 4, sources: [5])
    let coded = try encoder.encode(request)
    #expect(String(decoding: coded, as: UTF8.self) == #"{"entity":1,"relationship":4,"sources":[5],"welcomesRows":false}"#)
    #expect(try JSONDecoder().decode(RelationshipRequest.self, from: coded) == request)
  }

  @Test func indexesAreOrderedAndPrintedAsIntegers() {
    let two: EntityIndex = 2
    #expect(two == EntityIndex(2) && two == EntityIndex(rawValue: 2) && two != 3 && two < 3 && !(two < 2))
    #expect("\(two)" == "2" && two.hashValue == EntityIndex(2).hashValue && Set([two, 2, 3]).count == 2)
    #expect(Array(two..<5) == [2, 3, 4] && (two..<5).count == 3 && (two..<5).contains(4) && !(two..<5).contains(5))
  }

  @Test func anArrayOfIndexesHasTheLayoutOfIntegers() {
    hasTheLayoutOfItsInteger(EntityIndex.self)
    hasTheLayoutOfItsInteger(RelationshipIndex.self)
  }

  private func hasTheLayoutOfItsInteger<Integer: TypedInteger>(_ type: Integer.Type) {
    #expect(MemoryLayout<Integer>.size == MemoryLayout<Integer.RawValue>.size, "\(type)")
    #expect(MemoryLayout<Integer>.stride == MemoryLayout<Integer.RawValue>.stride, "\(type)")
  }

  @Test func anIndexFindsItsEntity() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Animal"), EntityDescription("Cat", superentity: "Animal"), EntityDescription("Dog", superentity: "Animal"),
    ])
    for entity in model.entities { #expect(model.entities[entity.index] === entity) }
    let animal = try #require(model.entity(named: "Animal"))
    #expect(model.entities[animal.familyIndexes].map(\.name) == ["Animal", "Cat", "Dog"])
  }

  @Test func anIndexFindsItsRelationship() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Owner", relationships: [.toMany("cats", to: "Cat", inverse: "owner"), .toOne("best", to: "Cat", inverse: nil)]),
      EntityDescription("Cat", relationships: [.toOne("owner", to: "Owner", inverse: "cats")]),
    ])
    for entity in model.entities {
      for relationship in entity.relationships { #expect(entity.relationships[relationship.index] == relationship) }
    }
    let cats = try #require(model.entity(named: "Owner")?.relationship(named: "cats"))
    #expect(cats.index == 1 && cats.inverseIndex == 0 && model.inverse(of: cats)?.name == "owner")
  }
}
