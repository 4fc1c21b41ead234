public import HoldfastStore

/// Builds tables from the contents of a file.
///
/// Call ``begin(_:)`` first. Then call ``take(_:of:)``, ``take(links:of:)``, ``take(order:keys:of:)``, ``take(stated:of:)`` and
/// ``take(history:)`` in any order, and finally `finish()`. The contents are validated like a save: a repeated key, or two rows that
/// violate a uniqueness constraint, count as damage.
public final class TableLoader {
  /// The model that the file is opened with.
  public let model: ManagedObjectModel
  /// The path of the file, for error messages.
  public let path: String?
  /// Whether the file's digest is valid. Defaults to true.
  ///
  /// A format sets it to false for a file that it reads although its digest is wrong or missing. Such a file may have been edited by hand.
  /// Its ``StoreFileHeader/lineage`` then describes the version before the edit, so the loader appends the file's digest.
  public var isVerified = true
  private let keySpace: KeySpace
  private var begun: (header: StoreFileHeader, schema: TableSchema)?
  private var rows: [[RowBatch]]
  private var request = SaveRequest()
  /// The places in `request` of links and order keys that several calls have added, and that aren't sorted yet.
  private var unsorted: (links: Set<Int>, orders: Set<Int>) = ([], [])
  private var stated: [(LinkDigest, ManagedObjectModel.Relationship)] = []
  /// The file's history; nil if it has none.
  private(set) var history: HistoryLog?
  /// The memory limit of the rows; nil if it was already checked.
  private var memory: RowMemory?
  /// Receives everything instead of the tables; nil for tables.
  private let receiver: (any LoaderReceiver)?
  /// Where rows go that are too many for the memory; nil if all stay there.
  private let spill: RowSpill?
  /// The options of the request that reads the file, checked for each batch. Defaults to none.
  var options = RequestOptions.none

  /// Creates a loader without rows.
  ///
  /// - Parameters:
  ///   - model: The model of the store.
  ///   - path: The path of the file, for errors.
  ///   - keySpace: The scope in which the keys of the file are unique.
  ///   - memory: The memory limit of the rows. Defaults to none, for files whose size is otherwise known.
  public convenience init(model: ManagedObjectModel, path: String?, keySpace: KeySpace = .family, memory: RowMemory? = nil) {
    self.init(model: model, path: path, keySpace: keySpace, memory: memory, passingTo: nil)
  }

  init(
    model: ManagedObjectModel, path: String?, keySpace: KeySpace, memory: RowMemory?, passingTo receiver: (any LoaderReceiver)? = nil,
    spillingTo spill: RowSpill? = nil
  ) {
    (self.receiver, self.spill) = (receiver, spill)
    self.model = model
    self.path = path
    self.keySpace = keySpace
    self.memory = memory
    rows = model.entities.map { _ in [] }
  }

  /// Begins loading with the file's header.
  ///
  /// - Returns: The identity to build batches with.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `incompatibleModel` if the file was written with another model, `damaged` if
  ///   its generation isn't in ``StoreFileHeader/generations``, `alreadyOpen` if its UUID is that of a store with text identifiers.
  public func begin(_ header: StoreFileHeader) throws -> StoreIdentity { try beginTables(header).identity }

  /// Begins loading with the file's header, like ``begin(_:)``, and returns the schema of the tables.
  public func beginTables(_ header: StoreFileHeader) throws -> TableSchema {
    precondition(begun == nil, "begin(_:) was called twice for one file.")
    if !StoreFileHeader.generations.contains(header.generation) { throw damaged("The generation number \(header.generation) is invalid.") }
    try header.check(model, path)
    let identity = try StoreIdentity.intern(storedUUID: header.storeUUID, model: model, path: path)
    let schema = TableSchema(model: model, identity: identity, keySpace: keySpace)
    begun = (header, schema)
    try receiver?.begin(header, schema)
    return schema
  }

  /// Adds rows of an entity, in any order.
  ///
  /// The batch becomes a page of the table, so large batches are better.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `tooLarge` if the rows added so far need more memory than
  ///   ``WholeFileOptions/maximumRowByteCount`` allows.
  public func take(_ batch: RowBatch, of entity: EntityIndex) throws {
    if let excess = memory?.add(batch.count, batch.layout) {
      throw StoreError(.tooLarge, operation: "open the store", path: path, reason: excess)
    }
    try options.check("read the store")
    if let receiver { try receiver.take(batch, of: entity) } else { rows[entity].append(spill?.kept(batch) ?? batch) }
  }

  /// Adds links of a many-to-many relationship, in any order. A relationship can have several calls, for example one for each section.
  ///
  /// Pass the side whose ``/HoldfastStore/ManagedObjectModel/Relationship/storesLinks`` is true. The source of each link is the object on
  /// that side. To-many relationships without an inverse are stored the same way.
  public func take(links: [SaveRequest.Link], of relationship: ManagedObjectModel.Relationship) {
    if let receiver { return receiver.take(links: links, of: relationship) }
    if let place = request.links.firstIndex(where: { $0.entity == relationship.entityIndex && $0.relationship == relationship.index }) {
      request.links[place].added += links
      unsorted.links.insert(place)
      return
    }
    var changes = SaveRequest.LinkChanges(entity: relationship.entityIndex, relationship: relationship.index)
    changes.added = LinkOrder.sorted(links)
    request.links.append(changes)
  }

  /// Adds the order keys of an ordered relationship.
  ///
  /// Each link has one order key. The source of a link is the owner. Links can be in any order, and a relationship can have several calls.
  ///
  /// Call this method for each ordered relationship, even if the file has no order keys of it. The loader then checks that they are exactly
  /// those of the relationship's links. Without a call, the destinations have no order, and the loader checks nothing.
  public func take(order links: [SaveRequest.Link], keys: [Int64], of relationship: ManagedObjectModel.Relationship) {
    precondition(links.count == keys.count, "take(order:keys:of:) was called with \(keys.count) keys for \(links.count) links.")
    if let receiver { return receiver.take(order: links, keys: keys, of: relationship) }
    if let place = request.orders.firstIndex(where: { $0.entity == relationship.entityIndex && $0.relationship == relationship.index }) {
      request.orders[place].links += links
      request.orders[place].keys += keys
      unsorted.orders.insert(place)
      return
    }
    var changes = SaveRequest.OrderChanges(entity: relationship.entityIndex, relationship: relationship.index)
    (changes.links, changes.keys) = TableLoader.sorted(links, keys)
    request.orders.append(changes)
  }

  private static func sorted(_ links: [SaveRequest.Link], _ keys: [Int64]) -> ([SaveRequest.Link], [Int64]) {
    let places = links.indices.sorted { links[$0] < links[$1] }
    return (places.map { links[$0] }, places.map { keys[$0] })
  }

  private func sortLinks() {
    for place in unsorted.links { request.links[place].added = LinkOrder.sorted(request.links[place].added) }
    for place in unsorted.orders {
      var changes = request.orders[place]
      (changes.links, changes.keys) = TableLoader.sorted(changes.links, changes.keys)
      request.orders[place] = changes
    }
    unsorted = ([], [])
  }

  /// Adds the file's history.
  public func take(history: HistoryLog) { self.history = history }

  /// Adds links for comparison, if the file contains each link at both of its ends.
  ///
  /// Pass the links of one end as rows or with ``take(links:of:)``, and those of the other end to this method. Both ends must contain the
  /// same links, except links of missing objects.
  public func take(stated links: LinkDigest, of relationship: ManagedObjectModel.Relationship) {
    if let receiver { receiver.take(stated: links, of: relationship) } else { stated.append((links, relationship)) }
  }

  /// The valid keys of objects.
  public static let keys: ClosedRange<ObjectKey> = 1...ObjectKey(1 << 62)
  /// The valid values of an entity's next key. It can be one above the maximum key.
  public static let nextKeys: ClosedRange<ObjectKey> = 1...ObjectKey(1 << 62 + 1)

  /// Builds the tables.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `damaged` if the contents contradict each other.
  func finish() throws -> LoadedStore {
    guard let (header, schema) = begun else { preconditionFailure("The format didn't call begin(_:).") }
    sortLinks()
    request.entities = model.entityIndexes.filter { !rows[$0].isEmpty }.map { entity in
      var changes = SaveRequest.EntityChanges(entity: entity)
      changes.inserted = rows[entity]
      return changes
    }
    let generation: TableGeneration
    do {
      generation = try TableSave.next(request, after: TableGeneration(empty: schema))
    } catch let error as StoreError {
      throw damaged("The file contradicts itself.", error)
    }
    let checks = LoadedTableChecks(generation, request)
    if let contradiction = checks.keys(header) ?? checks.targets() ?? checks.links() ?? checks.pairs() ?? checks.orders()
      ?? checks.stated(stated)
    {
      throw damaged(contradiction)
    }
    return LoadedStore(
      header: header, generation: generation, nextKeys: header.nextKeys(schema, largestKeys: generation.tables.map(\.largestKey)),
      history: history)
  }

  /// What was passed to the loader.
  struct Contents {
    var header: StoreFileHeader
    var schema: TableSchema
    var rows: [[RowBatch]]
    var request: SaveRequest
  }

  /// What was passed to the loader, without any check.
  var contents: Contents {
    guard let (header, schema) = begun else { preconditionFailure("The format didn't call begin(_:).") }
    sortLinks()
    return Contents(header: header, schema: schema, rows: rows, request: request)
  }

  private func damaged(_ reason: String, _ cause: StoreError? = nil) -> StoreError {
    StoreError(.damaged, operation: "open the store", path: path, reason: reason + " Restore the file from a backup.", cause: cause)
  }
}

/// Receives what a format passes to a ``TableLoader``, with the same meaning, so that no tables are built.
protocol LoaderReceiver: AnyObject {
  func begin(_ header: StoreFileHeader, _ schema: TableSchema) throws
  func take(_ batch: RowBatch, of entity: EntityIndex) throws
  func take(links: [SaveRequest.Link], of relationship: ManagedObjectModel.Relationship)
  func take(order links: [SaveRequest.Link], keys: [Int64], of relationship: ManagedObjectModel.Relationship)
  func take(stated links: LinkDigest, of relationship: ManagedObjectModel.Relationship)
}

/// The contents of a file that was read entirely.
struct LoadedStore {
  var header: StoreFileHeader
  var generation: TableGeneration
  var nextKeys: [ObjectKey]
  var history: HistoryLog?
}

/// The state of a store after opening its file.
struct OpenedStore {
  var header: StoreFileHeader
  var schema: TableSchema
  var source: RowSource
  var nextKeys: [ObjectKey]
  var history: HistoryLog?

  init(_ loaded: LoadedStore) {
    (header, schema, source, nextKeys) = (loaded.header, loaded.generation.schema, .tables(loaded.generation), loaded.nextKeys)
    history = loaded.history
  }

  init(_ file: any PagedStoreFile) {
    let paged = PagedGeneration(file)
    (header, schema, source, nextKeys) = (file.header, file.schema, .paged(paged), paged.nextKeys)
    history = file.history
  }
}
