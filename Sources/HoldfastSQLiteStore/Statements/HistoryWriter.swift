import HoldfastStore

/// Writes the history of one save, in the save's transaction.
final class HistoryWriter {
  private let request: SaveRequest
  private let store: OpenStore
  private let writer: SQLiteConnection
  private let plan: HistoryPlan

  /// An object that the save changes or deletes.
  private struct Changed: Hashable, Comparable {
    let entity: EntityIndex
    let key: ObjectKey

    static func < (a: Changed, b: Changed) -> Bool { (a.entity, a.key) < (b.entity, b.key) }
  }

  /// The changed properties of each updated object.
  private var updates: [Changed: Set<Int>] = [:]
  /// The rows of deleted objects and of updated objects whose values are kept, before the save.
  private var former: [Changed: RowView] = [:]
  /// The number of the transaction; 0 before it is written.
  private(set) var transaction: Int64 = 0
  /// The added and removed links of objects whose values are kept.
  private var links: [Changed: KeptLinks] = [:]
  /// The key of the next change.
  private var nextChange: Int64 = 0

  /// - Returns: Nil if the file keeps no history.
  static func begin(_ request: SaveRequest, _ store: OpenStore, _ writer: SQLiteConnection) throws -> HistoryWriter? {
    if store.database.options.historyTracking == .never || request.isEmpty { return nil }
    guard try store.history.isKept(writer) else { return nil }
    let history = HistoryWriter(request, store, writer)
    try history.readBefore()
    return history
  }

  private init(_ request: SaveRequest, _ store: OpenStore, _ writer: SQLiteConnection) {
    self.request = request
    plan = store.history.plan
    self.store = store
    self.writer = writer
  }

  // MARK: Before the changes

  private func readBefore() throws {
    for changes in request.entities {
      let entity = plan.entities[changes.entity.rawValue]
      for updated in changes.updated {
        for index in 0..<updated.rows.count {
          let slots = updated.rows.layout.slots.filter { updated.isChanged(row: index, slot: $0) }
          let changed = Changed(entity: changes.entity, key: updated.rows.pointer(index).key)
          updates[changed, default: []].formUnion(slots.map { entity.slotBits[$0.rawValue] })
          if entity.keepsValues { try keepRow(changed) }
        }
      }
      if !entity.preserved.isEmpty || entity.keepsValues {
        for key in changes.deleted.keys { try keepRow(Changed(entity: changes.entity, key: key)) }
      }
    }
    for links in request.links {
      let relationship = try store.entity(links.entity).relationships[links.relationship]
      for link in links.added + links.removed { noteLink(relationship, link) }
      if plan.keepsValues { keep(links, of: relationship) }
    }
    for orders in request.orders {
      let relationship = try store.entity(orders.entity).relationships[orders.relationship]
      for link in orders.links { noteLink(relationship, link, isOrder: true) }
    }
    try noteSeveredReferences()
  }

  private func keepRow(_ changed: Changed) throws {
    let entity = try store.entity(changed.entity), statement = try KeyRunner(store: store, connection: writer).rowByKey(entity)
    statement.bind(changed.key, at: 1)
    defer { if statement.isRunning { statement.reset() } }
    guard try statement.step() else { return }
    let builder = store.builder(entity)
    try store.decoders[changed.entity].append(statement, to: builder)
    former[changed] = builder.seal()[0]
  }

  /// Notes a link at its ends, if they are among the updated objects. The rows of both ends of a many-to-many link are.
  private func noteLink(_ relationship: ManagedObjectModel.Relationship, _ link: SaveRequest.Link, isOrder: Bool = false) {
    note(link.source, relationship)
    if !isOrder, let inverse = store.model.inverse(of: relationship) { note(link.target, inverse) }
  }

  /// Keeps links at both ends.
  private func keep(_ changes: SaveRequest.LinkChanges, of relationship: ManagedObjectModel.Relationship) {
    let inverse = store.model.inverse(of: relationship)
    for (links, isAddition) in [(changes.added, true), (changes.removed, false)] {
      for link in links {
        keep(link.source, relationship, link.target, isAddition)
        if let inverse { keep(link.target, inverse, link.source, isAddition) }
      }
    }
  }

  private func keep(_ owner: ObjectKey, _ relationship: ManagedObjectModel.Relationship, _ target: ObjectKey, _ isAddition: Bool) {
    let id = store.prefixes[relationship.destinationIndex].withKey(target)
    // Only the owner's row determines its subentity, so the links are kept under the root entity.
    let changed = Changed(entity: store.model.entities[relationship.entityIndex].rootIndex, key: owner)
    if isAddition {
      links[changed, default: KeptLinks()].added[relationship.name, default: []].append(id)
    } else {
      links[changed, default: KeptLinks()].removed[relationship.name, default: []].append(id)
    }
  }

  private func note(_ key: ObjectKey, _ relationship: ManagedObjectModel.Relationship) {
    for entity in store.model.entities[relationship.entityIndex].familyIndexes {
      let changed = Changed(entity: entity, key: key)
      guard updates[changed] != nil else { continue }
      updates[changed, default: []].insert(plan.entities[entity.rawValue].relationshipBits[relationship.index.rawValue])
    }
  }

  /// Notes the objects whose references to deleted objects the store will clear.
  private func noteSeveredReferences() throws {
    for changes in request.entities where !changes.deleted.keys.isEmpty {
      for relationship in try store.entity(changes.entity).relationships where relationship.deleteRule != .noAction {
        guard !relationship.isManyToMany, let inverse = store.model.inverse(of: relationship), !inverse.isToMany else { continue }
        try noteReferences(inverse, to: changes.deleted.keys)
      }
    }
    // An object that is deleted itself isn't updated.
    for changes in request.entities {
      for key in changes.deleted.keys { updates[Changed(entity: changes.entity, key: key)] = nil }
    }
  }

  private func noteReferences(_ relationship: ManagedObjectModel.Relationship, to keys: [ObjectKey]) throws {
    let table = store.schema.tables[relationship.entityIndex], column = SQLName.quoted(table.columns[relationship.slot])
    let select = try writer.statement("SELECT Z_PK, Z_ENT FROM \(SQLName.quoted(table.name)) WHERE \(column) = ?1")
    for key in keys {
      select.bind(key, at: 1)
      while try select.step() {
        let number = select.int64(1)
        // A damaged file may have the key in a row of an entity without the relationship.
        guard let entity = store.schema.tables.firstIndex(where: { $0.number == number }),
          store.model.entities[relationship.entityIndex].familyIndexes.contains(EntityIndex(entity))
        else { continue }
        let changed = Changed(entity: EntityIndex(entity), key: select.key(0))
        updates[changed, default: []].insert(plan.entities[entity].slotBits[relationship.slot.rawValue])
        if plan.entities[entity].keepsValues && former[changed] == nil { try keepRow(changed) }
      }
    }
  }

  // MARK: After the changes

  /// Writes the transaction and its changes.
  func write() throws {
    transaction = try reserve(HistoryTables.transactionNumber, 1)
    nextChange = try reserve(HistoryTables.changeNumber, changeCount)
    try writeTransaction()
    for changes in request.entities { try writeInsertions(changes) }
    for (changed, bits) in updates.sorted(by: { $0.key < $1.key }) {
      let bytes = plan.entities[changed.entity.rawValue].bytes(bits)
      let key = try writeChange(1, changed, columns: bytes)
      if plan.entities[changed.entity.rawValue].keepsValues { try writeValues(key, changed, of: bits) }
    }
    for changes in request.entities {
      for deleted in changes.deleted.keys { try writeDeletion(Changed(entity: changes.entity, key: deleted)) }
    }
    let options = store.database.options
    if let limit = options.maximumHistoryChangeCount, options.historyTracking == .always { try HistoryDeletion(writer).prune(to: limit) }
  }

  private var changeCount: Int {
    request.entities.reduce(updates.count) { count, changes in
      count + changes.inserted.reduce(0) { $0 + $1.count } + changes.deleted.keys.count
    }
  }

  /// Reserves keys in a table of the history, and returns the first one.
  private func reserve(_ table: Int64, _ count: Int) throws -> Int64 {
    // A program that doesn't know the history may have left too small a key.
    let name = [HistoryTables.changeNumber: "ACHANGE", HistoryTables.transactionNumber: "ATRANSACTION"][table] ?? "ATRANSACTIONSTRING"
    let update = try writer.statement(
      "UPDATE Z_PRIMARYKEY SET Z_MAX = max(CAST(ifnull(Z_MAX, 0) AS INTEGER), (SELECT ifnull(max(Z_PK), 0) FROM \(name))) + ?1 "
        + "WHERE Z_ENT = ?2")
    update.bind(count, at: 1)
    update.bind(table, at: 2)
    try update.run()
    let select = try writer.statement("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?1")
    select.bind(table, at: 1)
    defer { select.reset() }
    guard try select.step(), select.type(0) == .integer, (Int64(count)...(1 << 62)).contains(select.int64(0)) else {
      throw StoreError(
        .damaged, operation: writer.operation, path: store.path,
        reason: "Z_PRIMARYKEY lacks entity \(table) of the history, or its last key is invalid.")
    }
    return select.int64(0) - Int64(count) + 1
  }

  private func writeTransaction() throws {
    let insert = try writer.statement(
      "INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZAUTHORTS, ZCONTEXTNAMETS, ZPROCESSIDTS, ZTIMESTAMP) "
        + "VALUES (?1, \(HistoryTables.transactionNumber), ?2, ?3, ?4, ?5)")
    let names = [request.origin?.author, request.origin?.contextName, HistoryTransaction.currentProcessID]
    for (place, name) in names.enumerated() {
      if let name { insert.bind(try string(name), at: place + 2) } else { insert.bindNull(at: place + 2) }
    }
    insert.bind(transaction, at: 1)
    insert.bind(request.origin?.time ?? SaveOrigin().time, at: 5)
    try insert.run()
  }

  /// The key of a text in the table of texts.
  private func string(_ text: String) throws -> Int64 {
    let select = try writer.statement("SELECT Z_PK FROM ATRANSACTIONSTRING WHERE ZNAME = ?1")
    try select.bind(text, at: 1)
    defer { select.reset() }
    if try select.step() { return select.int64(0) }
    let key = try reserve(HistoryTables.stringNumber, 1)
    let insert = try writer.statement("INSERT INTO ATRANSACTIONSTRING (Z_PK, Z_ENT, ZNAME) VALUES (?1, \(HistoryTables.stringNumber), ?2)")
    insert.bind(key, at: 1)
    try insert.bind(text, at: 2)
    try insert.run()
    return key
  }

  /// Writes the insertions: one statement for each range of consecutive keys.
  private func writeInsertions(_ changes: SaveRequest.EntityChanges) throws {
    let insert = try writer.statement(
      "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID) "
        + "SELECT Z_PK + ?1, \(HistoryTables.changeNumber), 0, Z_ENT, Z_PK, ?2 FROM \(store.table(changes.entity)) WHERE Z_PK BETWEEN ?3 AND ?4"
    )
    let rows = changes.inserted.flatMap { batch in (0..<batch.count).map { batch[$0] } }.sorted { $0.key < $1.key }
    var start = 0
    while start < rows.count {
      var end = start + 1
      while end < rows.count, rows[end].key.rawValue == rows[end - 1].key.rawValue + 1 { end += 1 }
      insert.bind(nextChange - rows[start].key.rawValue, at: 1)
      insert.bind(transaction, at: 2)
      insert.bind(rows[start].key, at: 3)
      insert.bind(rows[end - 1].key, at: 4)
      try insert.run()
      if plan.entities[changes.entity.rawValue].keepsValues {
        for place in start..<end {
          let changed = Changed(entity: changes.entity, key: rows[place].key)
          try writeValues(nextChange + Int64(place - start), changed, nil, values(rows[place], changes.entity, of: nil))
        }
      }
      nextChange += Int64(end - start)
      start = end
    }
  }

  private func writeChange(_ kind: Int, _ changed: Changed, columns: [UInt8]?) throws -> Int64 {
    let key = nextChange
    nextChange += 1
    let insert = try writer.statement(
      "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID, ZCOLUMNS) "
        + "VALUES (?1, \(HistoryTables.changeNumber), ?2, ?3, ?4, ?5, ?6)")
    insert.bind(key, at: 1)
    insert.bind(kind, at: 2)
    insert.bind(store.schema.tables[changed.entity].number, at: 3)
    insert.bind(changed.key, at: 4)
    insert.bind(transaction, at: 5)
    if let columns { try insert.bind(columns, at: 6) } else { insert.bindNull(at: 6) }
    try insert.run()
    return key
  }

  private func writeDeletion(_ changed: Changed) throws {
    let key = try writeChange(2, changed, columns: nil)
    let entity = plan.entities[changed.entity.rawValue]
    guard let row = former[changed] else { return }
    if !entity.preserved.isEmpty {
      let assignments = entity.preserved.indices.map { "ZTOMBSTONE\($0) = ?\($0 + 2)" }.joined(separator: ", ")
      let update = try writer.statement("UPDATE ACHANGE SET \(assignments) WHERE Z_PK = ?1")
      let binder = RowBinder(entity: try store.entity(changed.entity), store)
      update.bind(key, at: 1)
      try withExtendedLifetime(row) {
        for (place, slot) in entity.preserved.enumerated() { try binder.bind(row.pointer, slot: slot, to: update, at: place + 2) }
        try update.run()
        update.clearBindings()
      }
    }
    if entity.keepsValues { try writeValues(key, changed, values(row, changed.entity, of: nil), nil) }
  }

  // MARK: Values

  private func writeValues(_ key: Int64, _ changed: Changed, of bits: Set<Int>) throws {
    let before = former[changed].map { values($0, changed.entity, of: bits) }
    former[changed] = nil
    try keepRow(changed)
    try writeValues(key, changed, before, former[changed].map { values($0, changed.entity, of: bits) })
  }

  private func writeValues(_ key: Int64, _ changed: Changed, _ former: [String: StoreValue]?, _ new: [String: StoreValue]?) throws {
    let insert = try writer.statement("INSERT INTO \(HistoryTables.values) (Z_PK, ZFORMER, ZNEW, ZLINKS) VALUES (?1, ?2, ?3, ?4)")
    insert.bind(key, at: 1)
    for (place, values) in [former, new].enumerated() {
      if let values {
        try insert.bind(HistoryCoding.encode(values), at: place + 2)
      } else {
        insert.bindNull(at: place + 2)
      }
    }
    let root = Changed(entity: store.model.entities[changed.entity].rootIndex, key: changed.key)
    if let links = links[root] {
      try insert.bind(HistoryCoding.encode(links), at: 4)
    } else {
      insert.bindNull(at: 4)
    }
    try insert.run()
  }

  /// The values of a row by name, of some properties or of all.
  private func values(_ row: RowView, _ index: EntityIndex, of bits: Set<Int>?) -> [String: StoreValue] {
    let slotBits = plan.entities[index.rawValue].slotBits
    return store.model.entities[index].historyValues(of: row, idPrefix: store.prefixes[index]) {
      bits?.contains(slotBits[$0.rawValue]) != false
    }
  }
}

/// The added and removed links of an object by relationship, as they are kept in the history. On disk: do not change.
struct KeptLinks: Codable {
  var added: [String: [ManagedObjectID]] = [:]
  var removed: [String: [ManagedObjectID]] = [:]
}
