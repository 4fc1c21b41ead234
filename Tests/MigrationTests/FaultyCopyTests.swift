import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Copies to a store that doesn't store what it is given: the comparison at the end finds it, and the destination doesn't change.
@Suite struct FaultyCopyTests {
  enum Fault: CaseIterable, Sendable {
    case lostObject
    case otherValue
    case lostLink
  }

  private final class FaultyStore: ForwardingStore {
    let base: any IncrementalStore
    private let fault: Fault

    init(_ base: any IncrementalStore, _ fault: Fault) { (self.base, self.fault) = (base, fault) }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      var request = request
      switch fault {
      case .lostObject: request.entities.removeLast()
      case .otherValue:
        for place in request.entities.indices {
          request.entities[place].inserted = try request.entities[place].inserted.map { try Self.changed($0) }
        }
      case .lostLink: request.links = []
      }
      return try base.prepare(request, options: options)
    }

    private static func changed(_ rows: RowBatch) throws -> RowBatch {
      let builder = RowBatchBuilder(layout: rows.layout, idPrefix: rows.idPrefix)
      for index in 0..<rows.count {
        let row = rows[index]
        try builder.append(key: row.key, version: row.version, values: row.values.map { $0 == .int16(3) ? .int16(4) : $0 })
      }
      return builder.seal()
    }
  }

  @Test(arguments: [MigratedStore.json, .xml, .binary, .sqlite], Fault.allCases)
  func aCopyThatDiffersFromItsSourceIsAnErrorAndReplacesNothing(store: MigratedStore, fault: Fault) throws {
    let age = AttributeDescription("age", .integer16, isOptional: true)
    let model = try model(
      EntityDescription("Dog", attributes: [age], relationships: [.toMany("peers", to: "Dog", inverse: "peers")]),
      EntityDescription("Walk"))
    let source = MigratedStore.Place(store == .sqlite ? .json : .sqlite), destination = MigratedStore.Place(store)
    try source.fill(model) { context in
      let first = try context.add("Dog", "a", ["age": .int16(3)]), second = try context.add("Dog", "b")
      try first.setValue([second], forKey: "peers")
      try context.add("Walk", "1")
    }
    let before = try source.folder.snapshot(), faulty = destination.description.wrapped { FaultyStore($0, fault) }
    func expectRefusal(_ body: () throws -> Void) throws {
      let error = #expect(throws: StoreError.self) { try body() }
      #expect(error?.code == .damaged && error?.path == destination.path, "\(error as Any)")
      let numbers = "\(fault == .lostObject ? 2 : 3) instead of 3 objects, or other values."
      #expect(error?.reason.contains(numbers) == true && error?.reason.contains("The destination wasn't changed.") == true)
      #expect(try source.folder.snapshot() == before)
    }
    try expectRefusal { try PersistentStoreCoordinator.copyPersistentStore(source.description, to: faulty) }
    #expect(destination.folder.names.isEmpty, "\(destination.folder.names)")
    try destination.fill(model) { try $0.add("Walk", "former") }
    let former = try destination.folder.snapshot()
    try expectRefusal { try PersistentStoreCoordinator.replacePersistentStore(faulty, withCopyOf: source.description) }
    try expectRefusal { try PersistentStoreCoordinator.movePersistentStore(source.description, to: faulty) }
    #expect(try destination.folder.snapshot() == former, "\(destination.folder.names)")
    try PersistentStoreCoordinator.replacePersistentStore(destination.description, withCopyOf: source.description)
    #expect(try destination.contents(model).count == 3)
  }
}
