public import HoldfastStore

/// Makes tables from what a format reads in a file.
///
/// Calls come in this order: ``begin(_:)``, then in any order ``take(_:of:)``, ``take(links:of:)``, ``take(order:keys:of:)``,
/// ``take(stated:of:)`` and ``take(_:)``, then `finish()`. What the file says is checked as a save would be: a key that comes twice and
/// two rows with the values of a uniqueness constraint are damage.
public final class TableLoader {
  /// The model with which the file is opened.
  public let model: ManagedObjectModel
  /// The path of the file, for messages.
  public let path: String?
  private let keySpace: KeySpace
  private var begun: (header: StoreFileHeader, schema: TableSchema)?
  private var rows: [[RowBatch]]
  private var request = SaveRequest()
  private var stated: [(LinkDigest, ManagedObjectModel.Relationship)] = []
  private var runs: RunFinder?
  /// What the rows may take; nil where that was checked before.
  private var memory: RowMemory?

  /// Begins with nothing.
  public convenience init(model: ManagedObjectModel, path: String?, keySpace: KeySpace = .family) {
    self.init(model: model, path: path, keySpace: keySpace, memory: nil)
  }

  init(model: ManagedObjectModel, path: String?, keySpace: KeySpace, memory: RowMemory?) {
    self.model = model
    self.path = path
    self.keySpace = keySpace
    self.memory = memory
    rows = model.entities.map { _ in [] }
  }

  /// Takes what the file says of the store.
  ///
  /// - Returns: the identity with which batches are to be built.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `incompatibleModel` when the file was written with another model, `damaged` when
  ///   its generation is none of ``StoreFileHeader/generations``.
  public func begin(_ header: StoreFileHeader) throws -> StoreIdentity { try beginTables(header).identity }

  /// As ``begin(_:)``, for a format that wants to know more of the tables than the identity.
  public func beginTables(_ header: StoreFileHeader) throws -> TableSchema {
    precondition(begun == nil, "A format began twice to load one file.")
    if !StoreFileHeader.generations.contains(header.generation) { throw damaged("Its generation is \(header.generation).") }
    try header.check(model, path)
    let identity = StoreIdentity.intern(storeUUID: header.storeUUID, model: model)
    let schema = TableSchema(model: model, identity: identity, keySpace: keySpace)
    begun = (header, schema)
    return schema
  }

  /// Takes rows of an entity, in any order. The batch becomes a page of the table: large ones are better.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `tooLarge` when the rows so far take more memory than
  ///   ``WholeFileOptions/largestRows`` allows.
  public func take(_ batch: RowBatch, of entity: Int) throws {
    if let excess = memory?.add(batch.count, batch.layout) {
      throw StoreError(.tooLarge, operation: "open the store", path: path, reason: excess)
    }
    rows[entity].append(batch)
  }

  /// Takes links of a relationship whose links are pairs of their own, from the side that names them, in any order.
  public func take(links: [SaveRequest.Link], of relationship: ManagedObjectModel.Relationship) {
    var changes = SaveRequest.LinkChanges(entity: relationship.entityIndex, relationship: relationship.index)
    changes.added = LinkOrder.sorted(links)
    request.links.append(changes)
  }

  /// Takes the keys by which targets of an ordered relationship stand: for each link from its side, in any order, a key.
  public func take(order links: [SaveRequest.Link], keys: [Int64], of relationship: ManagedObjectModel.Relationship) {
    precondition(links.count == keys.count, "A format gave \(keys.count) keys for the order of \(links.count) links.")
    var changes = SaveRequest.OrderChanges(entity: relationship.entityIndex, relationship: relationship.index)
    let places = links.indices.sorted { links[$0] < links[$1] }
    changes.links = places.map { links[$0] }
    changes.keys = places.map { keys[$0] }
    request.orders.append(changes)
  }

  /// Takes the links of a to-many relationship that a file names although the other side has named them already: they have to be the
  /// same, but for those of objects that are not there.
  public func take(stated links: LinkDigest, of relationship: ManagedObjectModel.Relationship) { stated.append((links, relationship)) }

  /// Takes where rows lie in a file of text, so that the first save can copy them. Only of a file whose digest is right.
  public func take(_ runs: RunFinder) { self.runs = runs }

  /// The keys that objects in a file may have.
  public static let keys: ClosedRange<Int64> = 1...(1 << 62)
  /// The least key that was never handed out may be one more than the last.
  public static let nextKeys: ClosedRange<Int64> = 1...(1 << 62 + 1)

  /// Makes the tables.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `damaged` when rows contradict each other.
  func finish() throws -> LoadedStore {
    guard let (header, schema) = begun else { preconditionFailure("A format read a file without a header.") }
    request.entities = rows.indices.filter { !rows[$0].isEmpty }.map { entity in
      var changes = SaveRequest.EntityChanges(entity: entity)
      changes.inserted = rows[entity]
      return changes
    }
    let generation: TableGeneration
    do {
      generation = try TableSave.next(request, after: TableGeneration(empty: schema))
    } catch let error as StoreError {
      throw damaged("What it says contradicts itself.", error)
    }
    let checks = LoadedTableChecks(generation, request)
    if let contradiction = checks.keys(header) ?? checks.targets() ?? checks.links() ?? checks.pairs() ?? checks.orders()
      ?? checks.stated(stated)
    {
      throw damaged(contradiction)
    }
    return LoadedStore(
      header: header, generation: generation, nextKeys: header.nextKeys(schema, largestKeys: generation.tables.map(\.largestKey)),
      parts: runs?.parts(rows) ?? [])
  }

  private func damaged(_ reason: String, _ cause: StoreError? = nil) -> StoreError {
    StoreError(.damaged, operation: "open the store", path: path, reason: reason + " Take a copy of the file from a backup.", cause: cause)
  }
}

/// What was read from a file as a whole.
struct LoadedStore {
  var header: StoreFileHeader
  var generation: TableGeneration
  var nextKeys: [Int64]
  /// What the format has noted of the file, for the first save.
  var parts: [FilePart]
  /// The file, when there is something to be copied from it.
  var saved: SavedFile?
}

/// What there is of a store when its file was opened.
struct OpenedStore {
  var header: StoreFileHeader
  var schema: TableSchema
  var source: RowSource
  var nextKeys: [Int64]
  /// The file, when it was read as a whole and there is something to be copied from it.
  var saved: SavedFile?

  init(_ loaded: LoadedStore) {
    (header, schema, source, nextKeys) = (loaded.header, loaded.generation.schema, .tables(loaded.generation), loaded.nextKeys)
    saved = loaded.saved
  }

  init(_ file: any PagedStoreFile) {
    let paged = PagedGeneration(file)
    (header, schema, source, nextKeys) = (file.header, file.schema, .paged(paged), paged.nextKeys)
  }
}
