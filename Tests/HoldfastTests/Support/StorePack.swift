import Holdfast
import HoldfastStore
import HoldfastStoreConformance

/// Two kinds of stores under one coordinator in a test.
enum StorePair: CaseIterable, Sendable, CustomStringConvertible {
  case memories, memoryAndSQLite, sqliteAndMemory, sqlites, memoryAndWeakest, weakestAndSQLite, memoryAndJSON, jsonAndSQLite, jsons,
    xmlAndJSON, binaryAndXML, sqliteAndBinary, binaries

  var kinds: [TestStore] {
    switch self {
    case .memories: [.memory, .memory]
    case .memoryAndSQLite: [.memory, .sqlite]
    case .sqliteAndMemory: [.sqlite, .memory]
    case .sqlites: [.sqlite, .sqlite]
    case .memoryAndWeakest: [.memory, .weakest]
    case .weakestAndSQLite: [.weakest, .sqlite]
    case .memoryAndJSON: [.memory, .json]
    case .jsonAndSQLite: [.json, .sqlite]
    case .jsons: [.json, .json]
    case .xmlAndJSON: [.xml, .json]
    case .binaryAndXML: [.binary, .xml]
    case .sqliteAndBinary: [.sqlite, .binary]
    case .binaries: [.binary, .binary]
    }
  }

  var description: String { kinds.map(\.rawValue).joined(separator: " + ") }
}

/// Several stores under one coordinator. Each of them can be made to fail, and records its requests.
final class StorePack {
  let coordinator: PersistentStoreCoordinator
  let recorders: [RecordingStore]
  let faults: [FaultInjectingStore]
  private let places: [TestStore.Place]

  init(_ kinds: [TestStore], model: ManagedObjectModel = Kennel.model, configurations: [String?] = []) throws {
    let places = try kinds.map { try $0.makePlace(model: model) }
    let faults = places.map { FaultInjectingStore($0.description.makeStore()) }
    let recorders = faults.map { RecordingStore($0) }
    var descriptions = zip(kinds, recorders).map { kind, recorder in StoreDescription(type: kind.rawValue) { recorder } }
    for (index, name) in configurations.enumerated() { descriptions[index].configuration = name }
    (self.places, self.faults, self.recorders) = (places, faults, recorders)
    coordinator = try PersistentStoreCoordinator(model: model, stores: descriptions)
  }

  convenience init(_ pair: StorePair) throws { try self.init(pair.kinds) }

  var stores: [PersistentStore] { coordinator.persistentStores }

  func context() throws -> ManagedObjectContext { try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes) }

  func clearRecords() { for recorder in recorders { recorder.clear() } }
}

extension RecordingStore {
  /// The prepared saves.
  var saves: [RecordedSave] { requests.compactMap { if case .prepare(let save) = $0 { save } else { nil } } }

  /// The fetches.
  var plans: [FetchPlan] { requests.compactMap { if case .fetch(let plan) = $0 { plan } else { nil } } }
}
