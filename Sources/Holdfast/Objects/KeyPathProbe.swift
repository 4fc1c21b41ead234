import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Finds out which property a key path reads by reading it.
///
/// `\Cat.name` and `\Animal.name` are different key paths to Swift, also where `name` is a property that `Cat` inherits
/// from `Animal`; only the latter stands in the table of `Animal`. So the key path is tried on an object with several rows: it
/// reads the slot whose value it gives, unchanged, whatever is in the other slots.
struct KeyPathProbe {
  private let object: ManagedObject

  /// Objects of classes with more slots or to-many relationships than that are not tried.
  private static let mostSlots = 128

  /// Knows an entity with as many relationships of each kind as accessors of a class may ask for.
  private static let coordinator: PersistentStoreCoordinator? = {
    let relationships = (0..<mostSlots).flatMap { number -> [RelationshipDescription] in
      [.toOne("one\(number)", to: "Probe", inverse: nil), .toMany("many\(number)", to: "Probe", inverse: nil)]
    }
    guard let model = try? ManagedObjectModel(entities: [EntityDescription("Probe", relationships: relationships)]) else { return nil }
    return try? PersistentStoreCoordinator(model: model, store: StoreDescription(type: "none") { NoStore() })
  }()

  /// Makes an object of a class that belongs to a context without a store.
  private init?(_ type: ManagedObject.Type) {
    guard let coordinator = KeyPathProbe.coordinator, let context = try? ManagedObjectContext(coordinator: coordinator) else { return nil }
    object = type.init(ManagedObjectSeed(context: context, key: 0, flags: [.probe, .detached]))
  }

  /// The binding of the property that a key path reads, among those of a class that inherits from another; nil for none.
  static func binding(of keyPath: AnyKeyPath, _ type: ManagedObject.Type) -> PropertyBinding? {
    guard let above = _getSuperclass(type), above != ManagedObject.self, type.properties.allSatisfy({ $0.slot < mostSlots }),
      let probe = KeyPathProbe(type)
    else { return nil }
    return type.properties.first { probe.reads($0, keyPath) }
  }

  private func reads(_ binding: PropertyBinding, _ keyPath: AnyKeyPath) -> Bool {
    // Paths through optionals end in other types than the properties that they begin with.
    guard Swift.type(of: keyPath).valueType == Swift.type(of: binding.keyPath()).valueType else { return false }
    switch binding.kind {
    case .attribute(let types, let type):
      guard let type = type as? any AttributeValue.Type, let kind = types.first?.cellKind else { return false }
      return (KeyPathProbe.rows(kind, binding.slot) + KeyPathProbe.rows(of: type, binding.slot)).allSatisfy { row in
        read(keyPath, row) == type.load(row.pointer(0), binding.slot).storeValue
      }
    case .toOne, .transformable, .composite: return place(keyPath) == UInt32(binding.slot)
    case .transient: return place(keyPath) == UInt32(KeyPathProbe.place(ofTransient: binding.slot))
    case .toMany: return (value(keyPath, KeyPathProbe.row(.key) { _ in nil }) as? any ToManyAccess)?.toManyIndex == binding.slot
    }
  }

  /// What an accessor that tells says of where it reads: a slot, or the place of a transient attribute.
  private func place(_ keyPath: AnyKeyPath) -> UInt32 {
    object.position = .max
    _ = value(keyPath, KeyPathProbe.row(.key) { _ in nil })
    return object.position
  }

  /// Behind those of all slots.
  static func place(ofTransient index: Int) -> Int { mostSlots + index }

  private func read(_ keyPath: AnyKeyPath, _ row: RowBatch) -> StoreValue? { (value(keyPath, row) as? any AttributeValue)?.storeValue }

  private func value(_ keyPath: AnyKeyPath, _ row: RowBatch) -> Any? {
    withExtendedLifetime(row) {
      object.row = row.pointer(0).base
      defer { object.row = nil }
      return (object as Any)[keyPath: keyPath]
    }
  }

  /// Rows that tell a slot from others, and its value from what might be made of it: different values everywhere, a value in
  /// that slot alone, in all others, and nowhere.
  private static func rows(_ kind: CellKind, _ slot: Int) -> [RowBatch] {
    let texts: [(Int) -> String] = [
      { "MiXed \u{DC}n\u{EF} \($0) and long" }, { String(1_000_000_000_000_000 + $0) },
      { "x-coredata://00000000-0000-0000-0000-000000000000/Probe/p\($0)" },
    ]
    return texts.enumerated().flatMap { round, text in
      let fills: [(Int) -> Bool] = [{ _ in true }, { $0 == slot }, { $0 != slot }, { _ in false }]
      return fills.map { isSet in row(kind) { isSet($0) ? (round == 0 ? Int64($0) * 3 + 1 : -Int64($0) * 7 - 2, text($0)) : nil } }
    }
  }

  /// Rows that tell a slot of an enumeration from others: one case there and another in all others, and the other way round. Other
  /// values are none of its cases and all look alike.
  private static func rows(of type: any AttributeValue.Type, _ slot: Int) -> [RowBatch] {
    guard let cases = (unwrapped(type) as? any CaseIterable.Type)?.ends, let kind = type.attributeTypes.first?.cellKind else { return [] }
    return [(cases.first, cases.last), (cases.last, cases.first)].map { here, elsewhere in
      let builder = RowBatchBuilder(layout: RowLayout(Array(repeating: column(kind), count: mostSlots)), idPrefix: nil)
      builder.beginRow(key: 0, version: 1)
      for place in 0..<mostSlots where !builder.appendValue(place == slot ? here : elsewhere, column(kind)) { builder.appendNull() }
      builder.endRow()
      return builder.seal()
    }
  }

  private static func column(_ kind: CellKind) -> ColumnType {
    switch kind {
    case .integer: .attribute(.integer64)
    case .real: .attribute(.double)
    case .bytes: .attribute(.string)
    case .key: .toOne(destination: 0)
    }
  }

  private static func row(_ kind: CellKind, _ value: (Int) -> (Int64, String)?) -> RowBatch {
    let builder = RowBatchBuilder(layout: RowLayout(Array(repeating: column(kind), count: mostSlots)), idPrefix: nil)
    builder.beginRow(key: 0, version: 1)
    for slot in 0..<mostSlots {
      switch (value(slot), kind) {
      case (nil, _): builder.appendNull()
      case (let (number, _)?, .integer), (let (number, _)?, .key): builder.append(integer: number)
      case (let (number, _)?, .real): builder.append(real: Double(number) + 0.5)
      case (let (_, text)?, .bytes): builder.append(text: text)
      }
    }
    builder.endRow()
    return builder.seal()
  }
}

extension CaseIterable {
  /// The raw values of the first and the last case of an enumeration that is an attribute.
  fileprivate static var ends: (first: StoreValue, last: StoreValue)? {
    let values = allCases.compactMap { ($0 as? any AttributeValue)?.storeValue }
    guard let first = values.first, let last = values.last else { return nil }
    return (first, last)
  }
}

/// A to-many relationship without its destination's type.
protocol ToManyAccess {
  var toManyIndex: Int { get }
}

extension OrderedRelationship: ToManyAccess {
  var toManyIndex: Int { index }
}

extension ToManyRelationship: ToManyAccess {
  var toManyIndex: Int { index }
}

/// The store of objects that are tried and never read or saved.
private final class NoStore: IncrementalStore {
  let capabilities = StoreCapabilities()

  func open(model: ManagedObjectModel) throws -> StoreMetadata {
    StoreMetadata(identity: StoreIdentity.intern(storeUUID: "00000000-0000-0000-0000-000000000000", model: model))
  }

  func close() throws {}

  private var nothing: StoreError {
    StoreError(.notOpen, operation: "answer a request", reason: "Objects by which key paths are tried have no store.")
  }

  func beginRead(_ kind: ReadViewKind) throws -> any ReadView { throw nothing }
  func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws { throw nothing }
  func rows(_ request: FaultRequest, in view: any ReadView, into sink: any RowSink) throws { throw nothing }
  func relationships(_ request: RelationshipRequest, in view: any ReadView) throws -> RelationshipAnswer { throw nothing }
  func allocateKeys(entity: Int, count: Int) throws -> [Int64] { throw nothing }
  func prepare(_ request: SaveRequest) throws -> any PreparedSave { throw nothing }
  func perform(_ request: BatchRequest) throws -> BatchResult { try UnsupportedRequest.batch(request) }
  func externalData(_ request: ExternalDataRequest) throws -> Data { try UnsupportedRequest.externalData(request) }

  func history(_ request: HistoryRequest) throws -> [HistoryTransaction] { try UnsupportedRequest.history(request) }
  func setMetadata(_ metadata: [String: StoreValue]) throws { throw nothing }
}
