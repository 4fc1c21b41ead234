import HoldfastStore

/// Finds out which property a key path reads by reading it.
///
/// `\Cat.name` and `\Animal.name` are different key paths to Swift, also where `name` is a property that `Cat` inherits
/// from `Animal`; only the latter stands in the table of `Animal`. So the key path is tried on an object whose slots all
/// but one are empty, and on one where only that one is: it reads the slot on which its value depends, and no other.
struct KeyPathProbe {
  private let object: ManagedObject

  /// Makes an object of a class that belongs to a context without a store.
  private init(_ type: ManagedObject.Type) throws {
    let coordinator = try PersistentStoreCoordinator(
      model: ManagedObjectModel(entities: [EntityDescription("Probe")]), store: StoreDescription(type: "none") { NoStore() })
    let context = try ManagedObjectContext(coordinator: coordinator)
    object = type.init(ManagedObjectSeed(context: context, key: 0, flags: [.probe, .detached]))
  }

  /// The binding of the property that a key path reads, among those of a class that inherits from another; nil for none.
  static func binding(of keyPath: AnyKeyPath, _ type: ManagedObject.Type) -> PropertyBinding? {
    guard let above = _getSuperclass(type), above != ManagedObject.self, let probe = try? KeyPathProbe(type) else { return nil }
    return type.properties.first { probe.reads($0, keyPath) }
  }

  private func reads(_ binding: PropertyBinding, _ keyPath: AnyKeyPath) -> Bool {
    switch binding.kind {
    case .attribute(let types, let type):
      guard Swift.type(of: keyPath).valueType == type, let kind = types.first?.cellKind else { return false }
      let slots = binding.slot + 1
      guard let none = value(keyPath, kind, slots: slots, set: { _ in false }) else { return false }
      return value(keyPath, kind, slots: slots) { $0 == binding.slot } != none
        && value(keyPath, kind, slots: KeyPathProbe.mostSlots) { $0 != binding.slot } == none
    case .toOne:
      let row = KeyPathProbe.row(.key, slots: KeyPathProbe.mostSlots) { _ in false }
      object.position = .max
      _ = read(keyPath, row)
      return object.position == UInt32(binding.slot)
    case .toMany:
      let row = KeyPathProbe.row(.key, slots: 1) { _ in false }
      return (read(keyPath, row) as? any ToManyAccess)?.toManyIndex == binding.slot
    }
  }

  /// Accessors of wider classes than that are not tried.
  private static let mostSlots = 256

  /// What an accessor of an attribute makes of a row in which some slots have a value.
  private func value(_ keyPath: AnyKeyPath, _ kind: CellKind, slots: Int, set: (Int) -> Bool) -> StoreValue? {
    (read(keyPath, KeyPathProbe.row(kind, slots: slots, set: set)) as? any AttributeValue)?.storeValue
  }

  private func read(_ keyPath: AnyKeyPath, _ row: RowBatch) -> Any? {
    withExtendedLifetime(row) {
      object.row = row.pointer(0).base
      defer { object.row = nil }
      return (object as Any)[keyPath: keyPath]
    }
  }

  /// A row whose cells are no type's zero: 1, or sixteen digits, which are text, bytes, a number and a UUID.
  private static func row(_ kind: CellKind, slots: Int, set: (Int) -> Bool) -> RowBatch {
    let column: ColumnType =
      switch kind {
      case .integer: .attribute(.integer64)
      case .real: .attribute(.double)
      case .bytes: .attribute(.string)
      case .key: .toOne(destination: 0)
      }
    // Slots beyond the row are empty ones too.
    let builder = RowBatchBuilder(layout: RowLayout(Array(repeating: column, count: max(slots, mostSlots))), idPrefix: nil)
    builder.beginRow(key: 0, version: 1)
    for slot in 0..<max(slots, mostSlots) {
      if slot >= slots || !set(slot) {
        builder.appendNull()
        continue
      }
      switch kind {
      case .integer, .key: builder.append(integer: 1)
      case .real: builder.append(real: 1)
      case .bytes: builder.append(text: "1111111111111111")
      }
    }
    builder.endRow()
    return builder.seal()
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
  func history(_ request: HistoryRequest) throws -> [HistoryTransaction] { try UnsupportedRequest.history(request) }
  func setMetadata(_ metadata: [String: StoreValue]) throws { throw nothing }
}
