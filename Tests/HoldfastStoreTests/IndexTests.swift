import Foundation
import HoldfastStore
import Testing

@Suite struct IndexTests {
  @Test func anIndexIsEncodedAsAnInteger() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let fault = FaultRequest(entity: 3, keys: [7])
    let json = try encoder.encode(fault)
    #expect(String(decoding: json, as: UTF8.self) == #"{"entity":3,"keys":[7]}"#)
    #expect(try JSONDecoder().decode(FaultRequest.self, from: json) == fault)
    #expect(String(decoding: try encoder.encode(ColumnType.toOne(destination: 2)), as: UTF8.self) == #"{"toOne":{"destination":2}}"#)
    let request = RelationshipRequest(entity: 1, relationship: 4, sources: [5])
    let coded = try encoder.encode(request)
    #expect(String(decoding: coded, as: UTF8.self) == #"{"acceptsRows":false,"entity":1,"relationship":4,"sources":[5]}"#)
    #expect(try JSONDecoder().decode(RelationshipRequest.self, from: coded) == request)
    let aggregates = AggregatePlan(groupBy: [3], columns: [.sum(slot: 2), .count(slot: nil)])
    let plan = try encoder.encode(aggregates)
    #expect(String(decoding: plan, as: UTF8.self) == #"{"columns":[{"sum":{"slot":2}},{"count":{}}],"groupBy":[3]}"#)
    #expect(try JSONDecoder().decode(AggregatePlan.self, from: plan) == aggregates)
    let keyed = SaveRequest.KeyedRows(keys: [5, 8], expectedVersions: [1, 4])
    let list = try encoder.encode(keyed)
    #expect(String(decoding: list, as: UTF8.self) == #"{"expectedVersions":[1,4],"keys":[5,8]}"#)
    #expect(try JSONDecoder().decode(SaveRequest.KeyedRows.self, from: list) == keyed)
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
    hasTheLayoutOfItsInteger(SlotIndex.self)
    hasTheLayoutOfItsInteger(RowVersion.self)
    hasTheLayoutOfItsInteger(ObjectKey.self)
  }

  private func hasTheLayoutOfItsInteger<Integer: TypedInteger>(_ type: Integer.Type) {
    #expect(MemoryLayout<Integer>.size == MemoryLayout<Integer.RawValue>.size, "\(type)")
    #expect(MemoryLayout<Integer>.stride == MemoryLayout<Integer.RawValue>.stride, "\(type)")
  }

  @Test func aKeyIsHashedOrderedAndEncodedAsItsNumber() throws {
    let keys = [3, -1, 7] as [ObjectKey]
    #expect(keys.sorted() == [-1, 3, 7] && Set(keys + [7]).count == 3 && Set(keys).contains(7) && !Set(keys).contains(8))
    #expect(Dictionary(uniqueKeysWithValues: keys.map { ($0, $0.rawValue) })[-1] == -1)
    #expect(ObjectKey(7)._rawHashValue(seed: 5) == Int64(7)._rawHashValue(seed: 5))
    #expect(try String(decoding: JSONEncoder().encode(keys), as: UTF8.self) == "[3,-1,7]")
    #expect(StoreValue.key(7) == .int64(7) && "\(ObjectKey(7))" == "7")
  }

  @Test func aVersionIsFollowedByTheNextNumberOrByOne() {
    #expect(RowVersion(0).next == 1 && RowVersion(41).next == 42 && RowVersion(.max).next == 1)
  }

  @Test func anIndexFindsItsEntity() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Animal"), EntityDescription("Cat", superentity: "Animal"), EntityDescription("Dog", superentity: "Animal"),
    ])
    for entity in model.entities { #expect(model.entities[entity.index] === entity) }
    let animal = try #require(model.entity(named: "Animal"))
    #expect(model.entities[animal.familyIndexes].map(\.name) == ["Animal", "Cat", "Dog"])
  }

  @Test func aSlotFindsItsPropertyColumnAndBit() throws {
    let names = (100..<170).map { "n\($0)" }
    let model = try ManagedObjectModel(entities: [EntityDescription("Wide", attributes: names.map { AttributeDescription($0, .string) })])
    let entity = try #require(model.entity(named: "Wide"))
    #expect(entity.slotIndexes == 0..<70 && entity.layout.slots == entity.slotIndexes)
    for (slot, name) in zip(entity.slotIndexes, names) {
      #expect(entity.slot(named: name) == slot && entity.slots[slot].name == name)
      #expect(entity.layout.columns[slot] == .attribute(.string) && entity.layout.kinds[slot] == .bytes)
      #expect(slot.word == slot.rawValue / 64 && slot.bit == 1 << UInt64(slot.rawValue % 64))
    }
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
