import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport
import Testing

/// Values and links of Core Data's stores through managed objects, beside what plain SQLite finds, if `HOLDFAST_CORPUS` names a folder.
@Suite(.enabled(if: CorpusFolder.path != nil, "HOLDFAST_CORPUS isn't set.")) struct CorpusValueTests {
  private struct Facts: Decodable {
    struct Entity: Decodable {
      struct Column: Decodable {
        var checksum: UInt64
        var non_null: Int
      }
      var columns: [String: Column]
      var rows: Int?
    }
    var entities: [String: Entity]?
    /// The number of rows of each join table.
    var join_tables: [String: Int]?
  }

  private static let facts: [String: Facts] = {
    guard let data = try? Data(contentsOf: URL(fileURLWithPath: CorpusFolder.file("facts.json"))) else { return [:] }
    return (try? JSONDecoder().decode([String: Facts].self, from: data)) ?? [:]
  }()

  /// The sums of the checksums of an attribute's values, in each form in which SQLite may keep them.
  private struct Sums {
    var count = 0
    /// Whole numbers as such, or as floating-point numbers; and values that may be in external files without or with their mark.
    var sums: [UInt64] = [0, 0]

    mutating func add(_ forms: [[UInt8]]) {
      count += 1
      for place in sums.indices { sums[place] += UInt64(CRC32.checksum(forms[min(place, forms.count - 1)])) }
    }
  }

  /// The text forms of a value, as Python writes what SQLite returns; empty for a value in an external file.
  private static func forms(_ value: StoreValue, isMarked: Bool) -> [[UInt8]] {
    func real(_ number: Double) -> [[UInt8]] {
      let text = Array("\(number)".utf8)
      return [Int64(exactly: number).map { Array("\($0)".utf8) } ?? text, text]
    }
    return switch value {
    case .bool(let value): [Array((value ? "1" : "0").utf8)]
    case .int16, .int32, .int64: [Array("\(value.integer ?? 0)".utf8)]
    case .float(let number): real(Double(number))
    case .double(let number), .date(let number): real(number)
    case .decimal(let number): [Array("\(number)".utf8), Array("\(Double("\(number)") ?? 0)".utf8)]
    case .string(let text), .uri(let text): [Array(text.utf8)]
    case .uuid(let id): [withUnsafeBytes(of: id.uuid) { Array($0) }]
    case .data(let bytes): isMarked ? [[1] + Array(bytes)] : [Array(bytes)]
    case .null, .externalData, .objectID: []
    }
  }

  @Test func valuesAndDestinationsHaveTheChecksumsOfPlainSQLite() throws {
    var columns = 0, values = 0
    for (path, facts) in Self.facts.sorted(by: { $0.key < $1.key }) where path.hasPrefix("sqlite/") {
      let folder = TemporaryFolder(), file = try CorpusFolder.copy(path, to: folder), model = try CorpusFolder.model(of: path, at: file)
      let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: file, isReadOnly: true))
      defer { try? coordinator.close() }
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
      for entity in model.entities {
        guard let known = facts.entities?[entity.name], (known.rows ?? 0) > 0 else { continue }
        var request = FetchRequest<ManagedObject>(entityName: entity.name)
        request.includesSubentities = false
        let objects = try context.fetch(request)
        for attribute in entity.attributes {
          guard let column = known.columns["Z" + attribute.name.uppercased()] else { continue }
          var sums = Sums(), external = 0
          for object in objects {
            let value = try object.value(forKey: attribute.name).storeValue ?? .null
            if value == .null { continue }
            let forms = Self.forms(value, isMarked: attribute.allowsExternalBinaryDataStorage)
            if forms.isEmpty { external += 1 } else { sums.add(forms) }
          }
          #expect(sums.count + external == column.non_null, "\(path) \(entity.name).\(attribute.name)")
          if external == 0 {
            #expect(sums.sums.contains(column.checksum), "\(path) \(entity.name).\(attribute.name) \(attribute.type)")
            columns += 1
            values += sums.count
          }
        }
        for relationship in entity.relationships where !relationship.isToMany {
          guard let column = known.columns["Z" + relationship.name.uppercased()] else { continue }
          var sums = Sums()
          for object in objects {
            if case .objectID(let id)? = try object.value(forKey: relationship.name).storeValue {
              sums.add([Array("\(id.key.rawValue)".utf8)])
            }
          }
          #expect(sums.count == column.non_null && sums.sums.contains(column.checksum), "\(path) \(entity.name).\(relationship.name)")
          columns += 1
          values += sums.count
        }
      }
    }
    #expect(Self.facts.count >= 33 && columns > 400 && values > 20_000, "\(columns) \(values)")
  }

  @Test func relationshipsAgreeFromBothSides() throws {
    var links = 0
    for path in Self.facts.keys.sorted() where path.hasPrefix("sqlite/") {
      let folder = TemporaryFolder(), file = try CorpusFolder.copy(path, to: folder), model = try CorpusFolder.model(of: path, at: file)
      let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: file, isReadOnly: true))
      defer { try? coordinator.close() }
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
      func targets(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) throws -> [ManagedObject] {
        let value = try object.value(forKey: relationship.name)
        if case .objectID(let id)? = value.storeValue { return [try context.object(with: id)] }
        return value.objects ?? []
      }
      for relationship in model.entities.flatMap(\.ownRelationships) {
        guard let inverse = model.inverse(of: relationship) else { continue }
        for owner in try context.fetch(FetchRequest<ManagedObject>(entityName: model.entities[relationship.entityIndex].name)) {
          for target in try targets(owner, relationship) {
            links += 1
            #expect(try targets(target, inverse).contains { $0 === owner }, "\(path) \(relationship.name)")
          }
        }
      }
    }
    #expect(links > 10_000, "\(links)")
  }

  /// Both sides are read from the same rows, so both would lack a link that is overlooked.
  @Test func manyToManyLinksAreAsManyAsPlainSQLiteCounts() throws {
    var all = 0
    for (path, facts) in Self.facts.sorted(by: { $0.key < $1.key }) where path.hasPrefix("sqlite/") {
      let folder = TemporaryFolder(), file = try CorpusFolder.copy(path, to: folder), model = try CorpusFolder.model(of: path, at: file)
      let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: file, isReadOnly: true))
      defer { try? coordinator.close() }
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
      var links = 0
      for relationship in model.entities.flatMap(\.ownRelationships) where relationship.storesLinks && relationship.hasInverse {
        for owner in try context.fetch(FetchRequest<ManagedObject>(entityName: model.entities[relationship.entityIndex].name)) {
          links += try owner.value(forKey: relationship.name).objects?.count ?? 0
        }
      }
      #expect(links == (facts.join_tables ?? [:]).values.reduce(0, +), "\(path)")
      all += links
    }
    #expect(all >= 128, "\(all)")
  }
}

/// The checksum of zlib's `crc32`.
private enum CRC32 {
  private static let table: [UInt32] = (0..<256).map { number in
    (0..<8).reduce(UInt32(number)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
  }

  static func checksum(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(~UInt32(0)) { table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] ^ ($0 >> 8) }
  }
}
