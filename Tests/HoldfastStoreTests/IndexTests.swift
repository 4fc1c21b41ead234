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
  }

  @Test func indexesAreOrderedAndPrintedAsIntegers() {
    let two: EntityIndex = 2
    #expect(two == EntityIndex(2) && two == EntityIndex(rawValue: 2) && two != 3 && two < 3 && !(two < 2))
    #expect("\(two)" == "2" && two.hashValue == EntityIndex(2).hashValue && Set([two, 2, 3]).count == 2)
    #expect(Array(two..<5) == [2, 3, 4] && (two..<5).count == 3 && (two..<5).contains(4) && !(two..<5).contains(5))
  }

  @Test func anArrayOfIndexesHasTheLayoutOfIntegers() {
    #expect(MemoryLayout<EntityIndex>.size == MemoryLayout<Int>.size && MemoryLayout<EntityIndex>.stride == MemoryLayout<Int>.stride)
  }

  @Test func anIndexFindsItsEntity() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Animal"), EntityDescription("Cat", superentity: "Animal"), EntityDescription("Dog", superentity: "Animal"),
    ])
    for entity in model.entities { #expect(model.entities[entity.index] === entity) }
    let animal = try #require(model.entity(named: "Animal"))
    #expect(model.entities[animal.familyIndexes].map(\.name) == ["Animal", "Cat", "Dog"])
  }
}
