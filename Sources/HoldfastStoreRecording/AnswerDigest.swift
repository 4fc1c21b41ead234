import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Computes the digest of an answer, so that answers of two stores can be compared.
///
/// The digest contains the keys, versions and object IDs of the recorded store. The digest of rows without an order doesn't depend on their
/// order. It detects differences but isn't secure.
struct AnswerDigest {
  private let model: ManagedObjectModel
  /// Converts keys and versions to those of the recorded store; nil for an answer of that store.
  private let names: ReplayedNames?
  /// The number that identifies the store in the IDs of its own objects.
  private let storeNumber: UInt32
  /// Whether the recorded store has external files. The digest then can't contain values that may be in a file instead of a row.
  private let hidesExternalValues: Bool
  /// Whether the digest depends on the order of the rows.
  let isOrdered: Bool
  /// Whether values are omitted. An answer with the output `keys` may contain any values.
  let isOfKeys: Bool
  private(set) var value: UInt64 = 0
  private(set) var count = 0

  /// Creates a digest of no rows.
  ///
  /// - Parameter plan: The plan whose answer the rows are; nil for rows that were requested by key.
  init(_ model: ManagedObjectModel, _ names: ReplayedNames?, storeNumber: UInt32, hidesExternalValues: Bool, plan: FetchPlan?) {
    (self.model, self.names, self.storeNumber, self.hidesExternalValues) = (model, names, storeNumber, hidesExternalValues)
    (isOrdered, isOfKeys) = (plan?.isOrdered ?? false, plan?.output == .keys)
  }

  mutating func add(_ batch: RowBatch, _ rows: RowSelection) {
    let entity = batch.entity(in: model)
    rows.forEach(in: batch) { add(digest(of: batch.pointer($0), batch.layout, entity)) }
  }

  private mutating func add(_ digest: UInt64) {
    value = isOrdered ? AnswerDigest.mixed(value, digest) : value &+ digest
    count += 1
  }

  /// The digests of each source's destinations: their keys, and their order keys if the relationship is ordered.
  ///
  /// Entities are omitted, because a store needn't know them. So are order keys of an unordered relationship, which some stores return.
  func digests(_ answer: RelationshipAnswer, _ relationship: ManagedObjectModel.Relationship) -> [UInt64] {
    let root = model.destination(of: relationship).rootIndex
    let orderKeys = relationship.isOrdered ? answer.orderKeys.flatMap { $0.count == answer.targets.count ? $0 : nil } : nil
    return zip(answer.offsets, answer.offsets.dropFirst()).map { start, end in
      // The offsets may be wrong: a store's answer is recorded before the framework checks it.
      (start..<max(start, end)).clamped(to: 0..<Int32(answer.targets.count)).reduce(into: UInt64(0)) { sum, index in
        let key = recordedKey(answer.targets[Int(index)], root)
        sum &+= AnswerDigest.mixed(UInt64(bitPattern: key.rawValue), UInt64(bitPattern: orderKeys?[Int(index)] ?? 0))
      }
    }
  }

  // MARK: Rows

  /// The digest of a row with its entity, key, version and values. A row that isn't an object has only values.
  private func digest(of row: RowPointer, _ layout: RowLayout, _ entity: ManagedObjectModel.Entity?) -> UInt64 {
    var digest: UInt64 = 0
    if let entity {
      let object = self.object(row, entity)
      digest = AnswerDigest.mixed(UInt64(entity.index.rawValue), UInt64(bitPattern: object.key.rawValue))
      digest = AnswerDigest.mixed(digest, UInt64(bitPattern: version(row, object).rawValue))
    }
    for slot in layout.slots where !isOfKeys {
      digest = AnswerDigest.mixed(digest, self.digest(of: row, slot, layout.columns[slot], entity))
    }
    return digest
  }

  /// A row's object in the recorded store.
  func object(_ row: RowPointer, _ entity: ManagedObjectModel.Entity) -> RecordedObject {
    RecordedObject(root: entity.rootIndex, key: recordedKey(row.key, entity.rootIndex))
  }

  /// A row's version in the recorded store.
  func version(_ row: RowPointer, _ object: RecordedObject) -> RowVersion { names?.recordedVersion(row.version, object) ?? row.version }

  /// The digest of the value in a slot; 0 for no value.
  func digest(of row: RowPointer, _ slot: SlotIndex, _ column: ColumnType, _ entity: ManagedObjectModel.Entity?) -> UInt64 {
    guard row.isPresent(slot) else { return 0 }
    switch column {
    case .toOne(let destination): return AnswerDigest.mixed(1, UInt64(bitPattern: recordedKey(row.key(slot), root(destination)).rawValue))
    case .attribute(.decimal), .attribute(.objectID): return AnswerDigest.digest(of: text(row.value(slot, column)))
    case .attribute(let type):
      if hidesExternalValues, let entity, entity.externalSlots.contains(slot) { return 1 }
      switch type.cellKind {
      case .bytes: return AnswerDigest.mixed(1, ContentDigest.value(of: row.bytes(slot)))
      case .real: return AnswerDigest.mixed(1, row.real(slot).isNaN ? 1 : row.real(slot).bitPattern)
      case .integer, .key: return AnswerDigest.mixed(1, UInt64(bitPattern: row.integer(slot)))
      }
    }
  }

  private func text(_ value: StoreValue) -> String {
    switch value {
    case .decimal(let number): number.description
    case .objectID(let id): text(id)
    default: "\(value)"
    }
  }

  /// The entity and key that an object has in the recorded store, or the URI of an object in another store.
  private func text(_ id: ManagedObjectID) -> String {
    guard id.storeNumber == storeNumber, let entity = model.entity(named: id.entityName) else { return id.uriRepresentation }
    return "\(entity.name)/\(recordedKey(id.key, entity.rootIndex))"
  }

  private func recordedKey(_ key: ObjectKey, _ root: EntityIndex) -> ObjectKey { names?.recordedKey(key, root) ?? key }

  private func root(_ index: EntityIndex) -> EntityIndex { model.entity(at: index)?.rootIndex ?? index }

  // MARK: Numbers

  private static func digest(of text: String) -> UInt64 {
    var digest = ContentDigest()
    digest.update(text.utf8)
    return mixed(1, digest.value)
  }

  /// A number that depends on both numbers and on their order.
  private static func mixed(_ a: UInt64, _ b: UInt64) -> UInt64 {
    var mixed = (a ^ (b &+ 0x9E37_79B9_7F4A_7C15 &+ (a << 6) &+ (a >> 2))) &* 0xBF58_476D_1CE4_E5B9
    mixed ^= mixed >> 31
    return mixed
  }
}

extension RowBatch {
  /// The entity of the rows; nil if they aren't objects.
  func entity(in model: ManagedObjectModel) -> ManagedObjectModel.Entity? { idPrefix.flatMap { model.entity(named: $0.entityName) } }
}

extension FetchPlan {
  /// Whether the order of the rows is defined.
  var isOrdered: Bool {
    !isReduced && (!sorts.isEmpty || offset > 0 || limit != nil)
  }

  /// Whether the answer is computed from rows.
  var isReduced: Bool {
    switch output {
    case .rows, .keys: false
    case .count, .aggregates: true
    }
  }
}
