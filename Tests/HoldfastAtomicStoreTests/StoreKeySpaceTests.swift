import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastAtomicStore

/// Tables in which all objects of the store share one key space.
@Suite struct StoreKeySpaceTests {
  private let model: ManagedObjectModel

  init() throws {
    model = try ManagedObjectModel(entities: [
      EntityDescription("Ship", relationships: [.toMany("boats", to: "Boat", inverse: "ship")]),
      EntityDescription("Boat", relationships: [.toOne("ship", to: "Ship", inverse: "boats")]),
      EntityDescription("Port"),
    ])
  }

  private func header(_ nextKeys: [String: ObjectKey] = [:]) -> StoreFileHeader {
    StoreFileHeader(
      storeUUID: "KEY-SPACE-TESTS", generation: 1,
      versionHashes: Dictionary(uniqueKeysWithValues: model.entities.map { ($0.name, $0.versionHash) }), nextKeys: nextKeys)
  }

  /// Inserts boats that reference ships, and ports.
  private func load(
    _ keySpace: KeySpace, ships: [Int64], boats: [(Int64, ship: Int64?)], ports: [Int64] = [], nextKeys: [String: ObjectKey] = [:]
  ) throws -> LoadedStore {
    let loader = TableLoader(model: model, path: nil, keySpace: keySpace)
    let identity = try loader.begin(header(nextKeys))
    func take(_ name: String, _ rows: [(Int64, ship: Int64?)]) throws {
      let entity = try #require(model.entity(named: name))
      let builder = RowBatchBuilder(entity: entity, identity: identity)
      for (key, ship) in rows {
        try builder.append(key: ObjectKey(key), version: 1, values: entity.slots.isEmpty ? [] : [ship.map { .int64($0) } ?? .null])
      }
      try loader.take(builder.seal(), of: entity.index)
    }
    try take("Ship", ships.map { ($0, nil) })
    try take("Boat", boats)
    try take("Port", ports.map { ($0, nil) })
    return try loader.finish()
  }

  @Test func everyAllocationTakesFromOneCounter() throws {
    let schema = TableSchema(model: model, identity: StoreIdentity.intern(storeUUID: "KEY-SPACE-TESTS", model: model), keySpace: .store)
    let tables = TableStore(TableGeneration(empty: schema))
    #expect(try tables.reserveKeys([KeyDemand(entity: 0, count: 2)]) == [[1, 2]])
    #expect(try tables.reserveKeys([KeyDemand(entity: 1, count: 1)]) == [[3]])
    #expect(try tables.reserveKeys([KeyDemand(entity: 0, count: 1)], others: [9, 9, 9]).keys == [[9]])
    #expect(try tables.reserveKeys([KeyDemand(entity: 2, count: 1)]) == [[10]] && tables.nextKeys == [11, 11, 11])
  }

  @Test func aFamilyHasACounterOfItsOwnUnlessSaid() throws {
    let schema = TableSchema(model: model, identity: StoreIdentity.intern(storeUUID: "KEY-SPACE-TESTS", model: model))
    let tables = TableStore(TableGeneration(empty: schema))
    #expect(try tables.reserveKeys([KeyDemand(entity: 0, count: 2)]) == [[1, 2]])
    #expect(try tables.reserveKeys([KeyDemand(entity: 1, count: 1)]) == [[1]])
  }

  @Test func theNextKeyIsBeyondAllThatAreInUseAnywhere() throws {
    let loaded = try load(.store, ships: [7], boats: [(3, ship: 7)])
    #expect(loaded.nextKeys == [8, 8, 8])
    #expect(try load(.store, ships: [7], boats: [], nextKeys: ["Port": 20]).nextKeys == [20, 20, 20])
    #expect(try load(.family, ships: [7], boats: [(3, ship: 7)]).nextKeys.sorted() == [1, 4, 8])
  }

  @Test func oneKeyForObjectsOfTwoEntitiesIsDamage() throws {
    _ = try load(.family, ships: [1, 2], boats: [(2, ship: 1)])
    let refusal = try #require(throws: StoreError.self) { try load(.store, ships: [1, 2], boats: [(2, ship: 1)]) }
    #expect(refusal.code == .damaged && "\(refusal)".contains("key 2"), "\(refusal)")
  }

  @Test func aKeyOfAnotherEntitysObjectIsDamageAndOneOfNoneIsNot() throws {
    _ = try load(.family, ships: [1], boats: [(2, ship: 3)], ports: [3])
    _ = try load(.store, ships: [1], boats: [(2, ship: 4)], ports: [3])
    let refusal = try #require(throws: StoreError.self) { try load(.store, ships: [1], boats: [(2, ship: 3)], ports: [3]) }
    #expect(refusal.code == .damaged && refusal.reason.contains("ship of Boat points to object 3"), "\(refusal)")
  }

  @Test func aNewRowWithTheKeyOfAnotherTableIsRefused() throws {
    let loaded = try load(.store, ships: [1], boats: [])
    let tables = TableStore(loaded.generation, nextKeys: loaded.nextKeys)
    let boat = try #require(model.entity(named: "Boat"))
    let builder = RowBatchBuilder(entity: boat, identity: loaded.generation.schema.identity)
    try builder.append(key: 1, version: 1, values: [.null])
    var changes = SaveRequest.EntityChanges(entity: boat.index)
    changes.inserted = [builder.seal()]
    var request = SaveRequest()
    request.entities = [changes]
    #expect(throws: StoreError.self) { try tables.prepare(request) }
  }

  @Test(arguments: [2, 1] as [ObjectKey]) func oneKeyOfNewRowsInTwoTablesIsRefused(_ key: ObjectKey) throws {
    let schema = TableSchema(model: model, identity: StoreIdentity.intern(storeUUID: "KEY-SPACE-TESTS", model: model), keySpace: .store)
    let tables = TableStore(TableGeneration(empty: schema))
    var request = SaveRequest()
    for (name, key) in [("Ship", 1), ("Port", key)] as [(String, ObjectKey)] {
      let entity = try #require(model.entity(named: name)), builder = RowBatchBuilder(entity: entity, identity: schema.identity)
      try builder.append(key: key, version: 1, values: [])
      var changes = SaveRequest.EntityChanges(entity: entity.index)
      changes.inserted = [builder.seal()]
      request.entities.append(changes)
    }
    if key == 1 {
      #expect(throws: StoreError.self) { try tables.prepare(request) }
    } else {
      try tables.prepare(request).publish()
      #expect(tables.generation?.number == 1)
    }
  }

  /// The bug: each new key was looked up in all tables.
  @Test func newRowsTakeNoLongerWithManyTables() throws {
    func time(_ count: Int) throws -> Duration {
      let model = try ManagedObjectModel(entities: (0..<count).map { EntityDescription("Entity\($0)") })
      let identity = StoreIdentity.intern(storeUUID: "KEY-SPACE-TESTS", model: model)
      let schema = TableSchema(model: model, identity: identity, keySpace: .store)
      func insertion(_ place: Int, _ keys: ClosedRange<Int64>) throws -> SaveRequest.EntityChanges {
        let entity = model.entities[place], builder = RowBatchBuilder(entity: entity, identity: identity)
        var changes = SaveRequest.EntityChanges(entity: entity.index)
        for key in keys {
          try builder.append(key: ObjectKey(key), version: 1, values: [])
          if builder.isFull { changes.inserted.append(builder.seal()) }
        }
        if builder.count > 0 { changes.inserted.append(builder.seal()) }
        return changes
      }
      var filling = SaveRequest(), adding = SaveRequest()
      filling.entities = try (0..<count).map { try insertion($0, Int64($0 + 1)...Int64($0 + 1)) }
      adding.entities = [try insertion(0, 1_001...21_000)]
      let filled = try TableSave.next(filling, after: TableGeneration(empty: schema))
      return try processorTime {
        let next = try TableSave.next(adding, after: filled)
        #expect(next.rowCount(of: 0) == 20_001)
      }
    }
    // Sixteen times as many tables, and as many rows.
    try expectCost(below: 3, times: { try time(25) }) { try time(400) }
  }

  @Test func aSetOfKeysAnswersWhetherOneIsNew() {
    var keys = KeySet(), model: Set<Int64> = []
    var numbers = SeededGenerator(seed: 3)
    for kind in SharedStructureTests.Keys.allCases {
      for _ in 0..<2_000 {
        let key = kind.next(&numbers)
        #expect(keys.insert(key) == model.insert(key).inserted)
      }
    }
  }
}
