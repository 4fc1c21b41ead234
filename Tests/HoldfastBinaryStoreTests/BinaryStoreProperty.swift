import HoldfastAtomicStore
import HoldfastBinaryStore
import HoldfastStore
import HoldfastStoreConformance

#if canImport(TestSupport)
  // The fuzzer compiles the file in its own module.
  import TestSupport
#endif

/// What must hold of any bytes that somebody gives as a binary store. The fuzzer in `Fuzzing/` checks it of bytes that it makes up, a
/// test of those that it starts from.
enum BinaryStoreProperty {
  static let model = WholeFileProperty.model(isUnique: true)

  // Saves differ in their generation, and so in their end.
  private static let property = WholeFileProperty(
    model: model, description: { .binary(at: $0, options: BinaryStore.Options(wholeFile: $1)) }, content: { $0.dropLast(64) })

  /// Which rule the bytes break; nil if they break none.
  static func violation(_ bytes: [UInt8]) -> String? { property.violation(bytes, readFirst: readPages) }

  /// Whether the bytes can't be opened, whatever their digest.
  static func refuses(_ bytes: [UInt8]) -> Bool { property.refuses(bytes) }

  /// Reads all of a file with valid digests, first page by page and then as a whole.
  ///
  /// - Returns: the error for a damaged or unsupported file, nil if the file is valid.
  /// - Throws: an error that the store must not throw, or a `WrongAnswer`.
  static func refusal(_ bytes: [UInt8]) throws -> StoreError? {
    let disk = SimulatedFileSystem()
    disk.setContents(of: "store", bytes)
    var options = BinaryStore.Options()
    options.wholeFile.file.fileSystem = disk
    let store = StoreDescription.binary(at: "/store", isReadOnly: true, options: options).makeStore()
    var refusal: StoreError?
    func attempt(_ body: () throws -> Void) throws {
      do { try body() } catch let error as StoreError where refusalCodes.contains(error.code) && error.path == "/store" { refusal = error }
    }
    try attempt { _ = try store.open(model: model) }
    if refusal != nil { return refusal }
    defer { try? store.close() }
    let view = try store.beginRead(.snapshot)
    defer { view.end() }
    // Reads single pages and index lookups, then verifies the whole file, which compares rows with indexes.
    try attempt { try readRows(of: store, in: view, ValueSink()) }
    try attempt { try lookUp(in: store, view) }
    try attempt { try (store as? WholeFileStore)?.verify() }
    try attempt { try lookUp(in: store, view) }
    try attempt { try readLinks(of: store, in: view) }
    return refusal
  }

  /// The errors allowed for a file with a valid header and trailer.
  private static let refusalCodes: Set<StoreError.Code> = [.damaged, .newerFormat, .incompatibleModel, .tooLarge]

  private static func readRows(of store: any IncrementalStore, in view: any ReadView, _ sink: ValueSink) throws {
    for entity in model.entities where !entity.isAbstract {
      try store.fetch(FetchPlan(entity: entity.index, concreteEntities: [entity.index]), in: view, into: sink)
      try store.rows(FaultRequest(entity: entity.index, keys: [1, 2, 3, 1 << 61]), in: view, into: sink)
    }
  }

  private struct WrongAnswer: Error { var reason: String }

  /// Looks up objects by a unique value and checks that each result has it.
  private static func lookUp(in store: any IncrementalStore, _ view: any ReadView) throws {
    guard let entity = model.entity(named: "A"), let slot = entity.slot(named: "ainteger64") else { return }
    for number in [0, 7, 14, 21] as [Int64] {
      let isNumber = QueryExpression.comparison(.property("ainteger64"), .equalTo, .constant(.int64(number)), [])
      let sink = ValueSink { batch, index in
        if batch[index].values[slot] != .int64(number) { throw WrongAnswer(reason: "A lookup by value returned the wrong object.") }
      }
      try store.fetch(FetchPlan(entity: entity.index, concreteEntities: [entity.index], predicate: isNumber), in: view, into: sink)
    }
  }

  private static func readLinks(of store: any IncrementalStore, in view: any ReadView) throws {
    for relationship in model.entities.flatMap(\.ownRelationships) where relationship.isToMany {
      let request = RelationshipRequest(
        entity: relationship.entityIndex, relationship: relationship.index, sources: [1, 2, 3, 4, 1 << 61])
      _ = try store.relationships(request, in: view)
    }
  }

  /// Reads single pages, before any check compares them with each other.
  private static func readPages(_ description: StoreDescription) throws {
    let store = description.makeStore()
    defer { try? store.close() }
    _ = try store.open(model: model)
    let view = try store.beginRead(.snapshot)
    defer { view.end() }
    let sink = ValueSink()
    for entity in model.entities where !entity.isAbstract {
      try? store.fetch(FetchPlan(entity: entity.index, concreteEntities: [entity.index]), in: view, into: sink)
      try? store.rows(FaultRequest(entity: entity.index, keys: [1, 2, 3, 1 << 61]), in: view, into: sink)
    }
    var unique = FetchPlan(entity: 0, concreteEntities: [0])
    for number in [0, 1, 7] as [Int64] {
      unique.predicate = .comparison(.property("ainteger64"), .equalTo, .constant(.int64(number)), [])
      try? store.fetch(unique, in: view, into: sink)
    }
  }
}

/// Decodes every value of every row.
private final class ValueSink: RowSink {
  private let check: (RowBatch, Int) throws -> Void

  /// - Parameter check: called with each requested row.
  init(check: @escaping (RowBatch, Int) throws -> Void = { _, _ in }) { self.check = check }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    for index in 0..<batch.count { _ = batch[index].values }
    switch rows {
    case .all: for index in 0..<batch.count { try check(batch, index) }
    case .one(let index): try check(batch, index)
    case .rows(let indexes): for index in indexes { try check(batch, Int(index)) }
    }
    return .more
  }
}
