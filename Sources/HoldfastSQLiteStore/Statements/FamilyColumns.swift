import HoldfastStore

/// The columns of a statement that reads rows of an entity and its subentities: key, version, `Z_ENT`, then every column of any of these
/// entities.
struct FamilyColumns: Sendable {
  /// The columns after SELECT for rows and for keys alone, with `t0` as the table's alias.
  let columns: String
  static let keyColumns = "t0.Z_PK, t0.Z_OPT, t0.Z_ENT"
  /// The entities with their number in `Z_ENT`, and the statement's column of each slot.
  let members: [(number: Int64, entity: EntityIndex, places: [Int32])]

  init(_ entity: ManagedObjectModel.Entity, _ schema: StoreSchema) {
    var names: [String] = []
    var places: [String: Int32] = [:]
    members = entity.concreteIndexes.filter { !schema.missingEntities.contains($0) }.map { index in
      let columns = schema.tables[index].columns
      for name in columns where places[name] == nil {
        places[name] = Int32(names.count + 3)
        names.append(name)
      }
      return (schema.tables[index].number, index, columns.map { places[$0] ?? 0 })
    }
    columns = ([FamilyColumns.keyColumns] + names.map { "t0.\(SQLName.quoted($0))" }).joined(separator: ", ")
  }
}

/// Passes rows of several entities to a sink in the statement's order.
///
/// Each entity's rows are decoded into separate batches. Runs of adjacent rows of one entity are passed on together.
final class FamilyStream {
  private let store: OpenStore
  private let family: FamilyColumns
  private let keysOnly: Bool
  private let sink: any RowSink
  /// What is needed to read an entity's rows.
  private final class Reading {
    let number: Int64
    let entity: EntityIndex
    let places: [Int32]
    let decoder: RowDecoder
    let builder: RowBatchBuilder

    init(_ member: (number: Int64, entity: EntityIndex, places: [Int32]), _ decoder: RowDecoder, _ builder: RowBatchBuilder) {
      (number, entity, places) = member
      self.decoder = decoder
      self.builder = builder
    }
  }
  /// The readings of all entities that had rows.
  private var readings: [Reading] = []
  /// The reading of the last row. Rows of one entity are mostly adjacent, so it usually applies to the next row.
  private var last: Reading?
  /// The runs since the last hand-over, each with the index of its first row in its entity's batch.
  private var runs: [(entity: EntityIndex, start: Int, count: Int)] = []

  init(_ store: OpenStore, _ family: FamilyColumns, keysOnly: Bool = false, _ sink: any RowSink) {
    self.store = store
    self.family = family
    self.keysOnly = keysOnly
    self.sink = sink
  }

  /// Passes on all rows of a statement. Returns false if the sink needs no more rows.
  func run(_ statement: SQLiteStatement) throws -> Bool {
    defer { statement.reset() }
    while try statement.step() {
      if try append(statement) == .enough { return false }
    }
    return true
  }

  /// Passes on rows of a statement whose keys are in a list. Both are in ascending order. Returns false if the sink needs no more rows.
  func run(_ statement: SQLiteStatement, only keys: [ObjectKey]) throws -> Bool {
    defer { statement.reset() }
    var place = 0
    while try statement.step() {
      let key = statement.key(0)
      while place < keys.count, keys[place] < key { place += 1 }
      if place == keys.count { return true }
      if keys[place] == key, try append(statement) == .enough { return false }
    }
    return true
  }

  private func append(_ statement: SQLiteStatement) throws -> SinkDemand {
    let reading = try reading(statement)
    if keysOnly {
      try reading.decoder.beginRow(statement, in: reading.builder)
      reading.builder.endRow()
    } else {
      try reading.decoder.append(statement, reading.places, to: reading.builder)
    }
    if let last = runs.last, last.entity == reading.entity {
      runs[runs.count - 1].count += 1
    } else {
      runs.append((reading.entity, reading.builder.count - 1, 1))
    }
    return reading.builder.isFull ? try handOver() : .more
  }

  private func reading(_ statement: SQLiteStatement) throws -> Reading {
    let number = statement.int64(2)
    if let last, last.number == number { return last }
    let reading = try readings.first { $0.number == number } ?? addReading(number, statement)
    last = reading
    return reading
  }

  private func addReading(_ number: Int64, _ statement: SQLiteStatement) throws -> Reading {
    guard let member = family.members.first(where: { $0.number == number }) else { throw unknownEntity(statement) }
    let layout = keysOnly ? RowLayout.keysOnly : store.model.entities[member.entity].layout
    let builder = RowBatchBuilder(layout: layout, idPrefix: store.prefixes[member.entity])
    let reading = Reading(member, store.decoders[member.entity], builder)
    readings.append(reading)
    return reading
  }

  /// Passes on the remaining rows.
  func finish() throws { _ = try handOver() }

  private func handOver() throws -> SinkDemand {
    let batches = readings.filter { $0.builder.count > 0 }.map { (entity: $0.entity, batch: $0.builder.seal()) }
    let runs = self.runs
    self.runs.removeAll(keepingCapacity: true)
    for run in runs {
      guard let batch = batches.first(where: { $0.entity == run.entity })?.batch else { continue }
      let rows: RowSelection =
        run.count == batch.count
        ? .all : run.count == 1 ? .one(run.start) : .rows((run.start..<run.start + run.count).map { UInt32($0) })
      if try sink.take(batch, rows) == .enough { return .enough }
    }
    return .more
  }

  private func unknownEntity(_ statement: SQLiteStatement) -> StoreError {
    StoreError(
      .damaged, operation: "read rows", path: store.path,
      reason: "The row with key \(statement.int64(0)) has \(statement.int64(2)) in Z_ENT, which isn't an entity of this table. "
        + "Another program or a fault has changed the file.")
  }
}
