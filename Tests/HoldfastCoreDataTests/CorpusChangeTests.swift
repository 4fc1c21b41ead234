import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastSQLiteStore
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Changes in copies of stores that Apple's framework wrote, if `HOLDFAST_CORPUS` names a folder.
@Suite(.enabled(if: CorpusFolder.path != nil, "HOLDFAST_CORPUS isn't set.")) struct CorpusChangeTests {
  /// How many stores had something for each kind of change.
  private struct Counts {
    var inserted = 0
    var updated = 0
    var linked = 0
    var moved = 0
    var deleted = 0
  }

  @Test func objectsAreInsertedChangedLinkedMovedAndDeletedWithoutTouchingAnythingElse() throws {
    var counts = Counts()
    for path in CorpusFolder.stores {
      let folder = TemporaryFolder(), file = try CorpusFolder.copy(path, to: folder), model = try CorpusFolder.model(of: path, at: file)
      let before = try Tables(file)
      let change = try Change(model, file)
      do {
        try change.run(&counts)
      } catch { Issue.record("\(path): \(error)") }
      try change.close()
      let after = try Tables(file)
      #expect(try SQL.rows(file, "PRAGMA integrity_check") == [["ok"]], "\(path)")
      #expect(after.contents.keys.sorted() == before.contents.keys.sorted(), "\(path)")
      for (table, rows) in before.contents where !change.tables.contains(table) {
        #expect(after.contents[table] == rows, "\(path) \(table)")
      }
      // A fetch index of the model that the file lacks is added.
      #expect(after.definitions.isSuperset(of: before.definitions), "\(path)")
      #expect(after.definitions.subtracting(before.definitions).allSatisfy { $0[0] == "index" }, "\(path)")
      #expect(after.entities == before.entities, "\(path)")
      // Plain SQLite finds the changes.
      for (table, difference) in change.differences {
        #expect(after.contents[table]?.count == (before.contents[table]?.count ?? 0) + difference, "\(path) \(table)")
      }
      for (query, text) in change.expected { #expect(try SQL.rows(file, query).first?.first == text, "\(path) \(query)") }
      try change.expectSame(afterReopening: file)
    }
    #expect(CorpusFolder.stores.count >= 33)
    #expect(counts.inserted >= 33 && counts.updated >= 24 && counts.linked >= 15 && counts.moved >= 5 && counts.deleted >= 33, "\(counts)")
  }

  /// The rows of all tables, as text.
  private struct Tables {
    private(set) var contents: [String: [[String]]] = [:]
    /// The definitions of tables, indexes, triggers and views.
    let definitions: Set<[String]>
    /// The numbers, names and superentities of the entities.
    let entities: [[String]]

    init(_ file: String) throws {
      definitions = Set(try SQL.rows(file, "SELECT type, name, tbl_name, sql FROM sqlite_master"))
      entities = try SQL.rows(file, "SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY ORDER BY Z_ENT")
      for row in try SQL.rows(file, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") {
        let columns = try SQL.rows(file, "SELECT name FROM pragma_table_info('\(row[0])')").map { "quote(\"\($0[0])\")" }
        contents[row[0]] = try SQL.rows(file, "SELECT \(columns.joined(separator: ", ")) FROM \"\(row[0])\" ORDER BY rowid")
      }
    }
  }

  /// The changes of one store.
  private final class Change {
    private let model: ManagedObjectModel
    private let coordinator: PersistentStoreCoordinator
    private let context: ManagedObjectContext
    /// The tables that may change.
    private(set) var tables: Set<String> = ["Z_PRIMARYKEY"]
    /// How many rows are added to a table.
    private(set) var differences: [String: Int] = [:]
    /// Queries of plain SQLite with their results.
    private(set) var expected: [(String, String)] = []
    private var lines: [String] = []

    init(_ model: ManagedObjectModel, _ file: String) throws {
      self.model = model
      // Otherwise, saves write the history of a file that has one.
      var options = SQLiteStoreOptions()
      options.historyTracking = .never
      coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: file, options: options))
      context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    }

    func run(_ counts: inout Counts) throws {
      if try update() { counts.updated += 1 }
      if try link() { counts.linked += 1 }
      if try move() { counts.moved += 1 }
      if let object = try insert() {
        counts.inserted += 1
        try delete(object)
        counts.deleted += 1
      }
      lines = try Self.lines(context)
    }

    func close() throws { try coordinator.close() }

    /// Another coordinator reads what this one had.
    func expectSame(afterReopening file: String) throws {
      let other = try PersistentStoreCoordinator(model: model, store: .sqlite(at: file, isReadOnly: true))
      #expect(try Self.lines(try ManagedObjectContext(coordinator: other, classes: [])) == lines)
      try other.close()
    }

    private static func lines(_ context: ManagedObjectContext) throws -> [String] {
      try context.persistentStoreCoordinator.model.entities.filter { !$0.isAbstract }.flatMap { entity in
        var request = FetchRequest<ManagedObject>(entityName: entity.name)
        request.includesSubentities = false
        request.fetchLimit = 50
        return try context.fetch(request).map { object in
          let links = try entity.relationships.map { relationship in
            let value = try object.value(forKey: relationship.name), keys = value.objects?.map(\.objectID.key.rawValue)
            return "\(relationship.name) \(keys.map { relationship.isOrdered ? $0 : $0.sorted() }.map { "\($0)" } ?? "\(value)")"
          }
          return "\(object.objectID.key) \(try entity.attributes.map { "\(try object.value(forKey: $0.name))" }) \(links)"
        }
      }.sorted()
    }

    // MARK: Changes

    private func objects(_ entity: ManagedObjectModel.Entity) throws -> [ManagedObject] {
      var request = FetchRequest<ManagedObject>(entityName: entity.name)
      request.includesSubentities = false
      request.fetchLimit = 20
      return try context.fetch(request)
    }

    private func table(_ entity: ManagedObjectModel.Entity) -> String { "Z" + model.entities[entity.rootIndex].name.uppercased() }

    /// Notes that the tables of an object and its links may change, also those of objects that name it.
    private func touch(_ entity: ManagedObjectModel.Entity, links: Bool = false) throws {
      tables.insert(table(entity))
      if !links { return }
      for relationship in entity.relationships { tables.insert(table(model.destination(of: relationship))) }
      // Join tables have names with numbers.
      tables.formUnion(Set(Self.joins))
    }

    private static let joins = (1...40).flatMap { number in (1...40).map { "Z_\(number)REL\($0)" } }

    private func update() throws -> Bool {
      for entity in model.entities where !entity.isAbstract {
        let attribute = entity.attributes.first {
          attribute in
          attribute.type == .string && attribute.derivation == nil && attribute.declaration.validation == .none
            && !entity.uniquenessConstraints.contains { $0.contains(attribute.name) }
        }
        guard let attribute, let object = try objects(entity).first else { continue }
        try object.setValue("Changed by a test: äöü", forKey: attribute.name)
        try context.save()
        try touch(entity)
        expected.append(
          ("SELECT \"Z\(attribute.name.uppercased())\" FROM \(table(entity)) WHERE Z_PK = \(object.objectID.key)", "Changed by a test: äöü")
        )
        return true
      }
      return false
    }

    private func link() throws -> Bool {
      for entity in model.entities where !entity.isAbstract {
        for relationship in entity.relationships where !relationship.isToMany && relationship.isOptional {
          guard let inverse = model.inverse(of: relationship), inverse.isOptional else { continue }
          let others = try objects(model.destination(of: relationship))
          for object in try objects(entity) {
            guard case .objectID(let id)? = try object.value(forKey: relationship.name).storeValue else { continue }
            let other = others.first { $0.objectID != id && $0.objectID != object.objectID }
            if !inverse.isToMany && other != nil { continue }
            try object.setValue(other, forKey: relationship.name)
            try context.save()
            try touch(entity, links: true)
            expected.append(
              (
                "SELECT \"Z\(relationship.name.uppercased())\" FROM \(table(entity)) WHERE Z_PK = \(object.objectID.key)",
                other.map { "\($0.objectID.key)" } ?? "NULL"
              ))
            return true
          }
        }
      }
      return false
    }

    private func move() throws -> Bool {
      for entity in model.entities where !entity.isAbstract {
        for relationship in entity.relationships where relationship.isOrdered {
          for object in try objects(entity) {
            guard let targets = try object.value(forKey: relationship.name).objects, targets.count > 1 else { continue }
            let moved = Array(targets[1...]) + [targets[0]]
            try object.setValue(moved, forKey: relationship.name)
            try context.save()
            try touch(entity, links: true)
            if let inverse = model.inverse(of: relationship), !inverse.isToMany {
              let table = table(model.destination(of: relationship)), name = inverse.name.uppercased()
              let ordered = "SELECT Z_PK FROM \(table) WHERE \"Z\(name)\" = \(object.objectID.key) ORDER BY \"Z_FOK_\(name)\""
              let keys = moved.map { "\($0.objectID.key)" }.joined(separator: ",")
              expected.append(("SELECT group_concat(Z_PK) FROM (\(ordered))", keys))
            }
            return true
          }
        }
      }
      return false
    }

    private func insert() throws -> ManagedObject? {
      for entity in model.entities where !entity.isAbstract {
        guard let object = try? context.insert(entityNamed: entity.name) else { continue }
        for attribute in entity.attributes where attribute.derivation == nil && attribute.defaultValue == nil {
          if attribute.isOptional && !entity.uniquenessConstraints.contains(where: { $0.contains(attribute.name) }) { continue }
          try object.setValue(Self.value(attribute.type), forKey: attribute.name)
        }
        for relationship in entity.relationships where !relationship.canBeEmpty {
          guard let target = try objects(model.destination(of: relationship)).first(where: { $0 !== object }) else { continue }
          if relationship.isToMany {
            try object.setValue([target], forKey: relationship.name)
          } else {
            try object.setValue(target, forKey: relationship.name)
          }
        }
        do { try context.save() } catch {
          context.rollback()
          continue
        }
        try touch(entity, links: true)
        return object
      }
      return nil
    }

    private func delete(_ object: ManagedObject) throws {
      let key = object.objectID.key, entity = object.entity
      context.delete(object)
      try context.save()
      differences[table(entity)] = 0
      expected.append(("SELECT COUNT(*) FROM \(table(entity)) WHERE Z_PK = \(key)", "0"))
      // And one that stays.
      if let other = try insert() {
        differences[table(other.entity)] = 1
        expected.append(("SELECT COUNT(*) FROM \(table(other.entity)) WHERE Z_PK = \(other.objectID.key)", "1"))
      }
    }

    private static func value(_ type: AttributeType) -> StoreValue {
      switch type {
      case .string: .string("new \(UUID())")
      case .integer16: .int16(1)
      case .integer32: .int32(1)
      case .integer64: .int64(1)
      case .boolean: .bool(true)
      case .double: .double(1.5)
      case .float: .float(1.5)
      case .decimal: .decimal(2)
      case .date: .date(1000)
      case .uuid: .uuid(UUID())
      case .uri: .uri("https://example.org/\(UUID())")
      default: .data(Data([1, 2, 3]))
      }
    }
  }
}
