import HoldfastStore
import HoldfastSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A digest of all objects of a store: their entities, values and links.
///
/// It depends neither on the type of the store nor on the keys of the objects, only on their order. So a store and a copy of it have the
/// same digest. It detects accidental differences; it isn't secure.
public struct GraphDigest: Sendable, Hashable, CustomStringConvertible {
  private var high: UInt64 = 0
  private var low: UInt64 = 0
  /// The number of objects.
  public private(set) var objectCount = 0

  /// The digest in hexadecimal digits, 32 of them.
  public var description: String { [high, low].map { String(repeating: "0", count: $0.leadingZeroBitCount / 4) + digits($0) }.joined() }

  private func digits(_ number: UInt64) -> String { number == 0 ? "" : String(number, radix: 16) }

  /// An empty graph.
  init() {}

  /// Reads all objects of a store.
  init(_ reader: GraphReader) throws {
    var digest = GraphDigest()
    for entity in reader.model.entities where !entity.isAbstract {
      try reader.forEachRow(of: entity) { digest.add(try reader.record(of: $0.pointer, entity)) }
    }
    for relationship in reader.linkRelationships {
      try reader.forEachOwner(of: relationship) { owner, targets in
        if let record = reader.record(owner, targets.map(\.target), relationship) { digest.addLinks(record) }
      }
    }
    self = digest
  }

  /// Adds an object. The order of calls doesn't matter.
  mutating func add(_ record: [UInt8]) {
    objectCount += 1
    addLinks(record)
  }

  mutating func addLinks(_ record: [UInt8]) {
    high &+= XXHash64.hash(record, seed: 1)
    low &+= XXHash64.hash(record, seed: 2)
  }
}

extension RowPointer {
  /// The bits of a real number, without what only some stores keep: the sign of zero, the sign and payload of NaN, and digits that its type
  /// doesn't have. A SQLite file of another program can have these.
  func comparableBits(_ slot: SlotIndex, _ column: ColumnType) -> UInt64 {
    let number = column == .attribute(.float) ? Double(Float(real(slot))) : real(slot)
    return number.isNaN ? Double.nan.bitPattern : (number + 0.0).bitPattern
  }
}

extension GraphReader {
  /// What a digest contains of a row.
  func record(of row: RowPointer, _ entity: ManagedObjectModel.Entity) throws -> [UInt8] {
    var record = Record(entity.name)
    record.append(rank(row.key, entity.rootIndex) ?? -1)
    for slot in entity.layout.slots {
      switch entity.layout.columns[slot] {
      case .toOne(let destination):
        let root = model.entities[destination].rootIndex
        record.append(row.isPresent(slot) ? rank(ObjectKey(row.integer(slot)), root) ?? -1 : -1)
      case .attribute where !row.isPresent(slot): record.append(-1)
      case .attribute(.objectID): record.append(bytes: objectID(row, slot).utf8)
      case .attribute:
        switch entity.layout.kinds[slot] {
        case .bytes where row.isExternal(slot): record.append(bytes: try bytes(row, slot, of: entity) ?? Data())
        case .bytes: record.append(bytes: row.bytes(slot))
        // The count distinguishes a number from a missing one.
        case .real: record.append(8, row.comparableBits(slot, entity.layout.columns[slot]))
        default: record.append(8, UInt64(bitPattern: row.integer(slot)))
        }
      }
    }
    return record.bytes
  }

  /// What a digest contains of an object's destinations in order; nil if none of them exists.
  func record(_ owner: ObjectKey, _ targets: [ObjectKey], _ relationship: ManagedObjectModel.Relationship) -> [UInt8]? {
    let root = model.destination(of: relationship).rootIndex, ranks = targets.compactMap { rank($0, root) }
    guard !ranks.isEmpty, let owner = rank(owner, model.entities[relationship.entityIndex].rootIndex) else { return nil }
    var record = Record("\(model.entities[relationship.entityIndex].name).\(relationship.name)")
    record.append(owner)
    for rank in relationship.isOrdered ? ranks : ranks.sorted() { record.append(rank) }
    return record.bytes
  }

  /// An object ID, with the rank instead of the store and key if the object is one of this store.
  private func objectID(_ row: RowPointer, _ slot: SlotIndex) -> String {
    guard case .objectID(let id) = row.value(slot, .attribute(.objectID)) else {
      return String(decoding: row.bytes(slot), as: UTF8.self)
    }
    guard id.storeIdentifier == identity.storeUUID, let entity = model.entity(named: id.entityName),
      let rank = rank(id.key, entity.rootIndex)
    else { return id.uriRepresentation }
    return "\(entity.name) \(rank)"
  }

  private struct Record {
    var bytes: [UInt8] = []

    init(_ name: String) { append(bytes: name.utf8) }

    /// Adds a number, the lowest byte first.
    mutating func append(_ number: Int) { append(UInt64(bitPattern: Int64(number))) }

    mutating func append(_ count: Int, _ number: UInt64) {
      append(count)
      append(number)
    }

    private mutating func append(_ number: UInt64) {
      for shift in stride(from: UInt64(0), to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    /// Adds the count as well, so that no two lists of values have the same bytes.
    mutating func append(bytes value: some Collection<UInt8>) {
      append(value.count)
      bytes.append(contentsOf: value)
    }
  }
}
