/// The changes of one save in one store.
///
/// Rows are sealed batches. Only encoding converts them to ``StoreValue``s. Each row has the version it has *after* the save. A row
/// that existed before also has an expected version: the version that the context read. If one doesn't match, the store refuses the entire
/// request.
///
/// A store applies a request in this order:
///
/// 1. Compare the expected versions of updated, deleted and locked rows. Throw all conflicts at once.
/// 2. Delete rows.
/// 3. Update rows.
/// 4. Insert rows, then check uniqueness constraints. Throw all conflicts at once.
/// 5. Remove links, then add links (``links``).
/// 6. Sever references to deleted rows (``EntityChanges/deleted``).
/// 7. Set the order keys of ordered relationships (``orders``).
/// 8. Set and add derived values (``EntityChanges/derived``).
///
/// A store compares versions and checks uniqueness only if it declares ``StoreCapabilities/versions`` and ``StoreCapabilities/uniqueness``.
///
/// Each step covers all entities before the next one begins. Deletions and updates come before insertions to free the values of uniqueness
/// constraints. A new row may reuse the value of a deleted row, and two updated rows may exchange values. A store may use another order if
/// the result is the same.
public struct SaveRequest: Sendable, Codable {
  /// Changed rows, and which of their slots changed.
  public struct UpdatedRows: Sendable, Codable {
    /// The rows as they are after the save.
    public var rows: RowBatch
    /// The version of each row before the save.
    public var expectedVersions: [RowVersion]
    /// The slots that changed, as ``wordsPerRow`` words of bits per row. Slot 0 is the lowest bit of the first word.
    ///
    /// If no bit of a row is set, only its version changes. If a derived attribute (``ManagedObjectModel/Entity/derivedAttributes``) isn't
    /// marked, the store keeps its stored value. Another save may have changed that value without raising the version.
    public var changedSlots: [UInt64]
    /// The number of words per row in ``changedSlots``.
    public var wordsPerRow: Int

    /// Creates updated rows.
    public init(rows: RowBatch, expectedVersions: [RowVersion], changedSlots: [UInt64], wordsPerRow: Int) {
      self.rows = rows
      self.expectedVersions = expectedVersions
      self.changedSlots = changedSlots
      self.wordsPerRow = wordsPerRow
    }

    /// Whether a slot of a row changed.
    public func isChanged(row: Int, slot: SlotIndex) -> Bool {
      changedSlots[row * wordsPerRow + slot.word] & slot.bit != 0
    }

    private enum CodingKeys: String, CodingKey { case rows, expectedVersions, changedSlots, wordsPerRow }

    /// Decodes the rows from values.
    public init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      rows = try container.decode(CodedRows.self, forKey: .rows).batch()
      expectedVersions = try container.decode([RowVersion].self, forKey: .expectedVersions)
      changedSlots = try container.decode([UInt64].self, forKey: .changedSlots)
      wordsPerRow = try container.decode(Int.self, forKey: .wordsPerRow)
    }

    /// Encodes the rows as values.
    public func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(CodedRows(rows), forKey: .rows)
      try container.encode(expectedVersions, forKey: .expectedVersions)
      try container.encode(changedSlots, forKey: .changedSlots)
      try container.encode(wordsPerRow, forKey: .wordsPerRow)
    }
  }

  /// Keys of rows, with the versions that the context read.
  public struct KeyedRows: Sendable, Codable, Hashable {
    /// The keys, ascending.
    public var keys: [ObjectKey]
    /// The expected version of each row.
    public var expectedVersions: [RowVersion]

    /// Creates the lists.
    public init(keys: [ObjectKey] = [], expectedVersions: [RowVersion] = []) {
      self.keys = keys
      self.expectedVersions = expectedVersions
    }
  }

  /// The changes to rows of one concrete entity.
  public struct EntityChanges: Sendable, Codable {
    /// The entity's index.
    public var entity: EntityIndex
    /// New rows, ascending by key across the batches.
    public var inserted: [RowBatch] = []
    /// Changed rows, ascending by key across the batches.
    public var updated: [UpdatedRows] = []
    /// Rows to delete.
    ///
    /// The store also severs references to the deleted rows. For each relationship of their entity whose delete rule isn't
    /// ``DeleteRule/noAction``:
    ///
    /// - Links of many-to-many relationships are removed.
    /// - To-one keys of the inverse are set to nil in other rows. The version of each such row is raised by 1, once, even if several of its
    ///   keys are cleared.
    ///
    /// Links from to-many relationships without inverse to deleted rows are always removed. Severing covers all deleted rows together,
    /// after the updates of the same request.
    public var deleted = KeyedRows()
    /// Rows that don't change, whose expected versions are compared.
    public var locked = KeyedRows()
    /// Values of derived attributes that depend on other objects. They are applied after everything else.
    public var derived: [DerivedRows] = []

    /// Creates an empty record.
    public init(entity: EntityIndex) { self.entity = entity }

    private enum CodingKeys: String, CodingKey { case entity, inserted, updated, deleted, locked, derived }

    /// Decodes the rows from values.
    public init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      entity = try container.decode(EntityIndex.self, forKey: .entity)
      inserted = try container.decode([CodedRows].self, forKey: .inserted).map { try $0.batch() }
      updated = try container.decode([UpdatedRows].self, forKey: .updated)
      deleted = try container.decode(KeyedRows.self, forKey: .deleted)
      locked = try container.decode(KeyedRows.self, forKey: .locked)
      derived = try container.decodeIfPresent([DerivedRows].self, forKey: .derived) ?? []
    }

    /// Encodes the rows as values.
    public func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(entity, forKey: .entity)
      try container.encode(inserted.map(CodedRows.init), forKey: .inserted)
      try container.encode(updated, forKey: .updated)
      try container.encode(deleted, forKey: .deleted)
      try container.encode(locked, forKey: .locked)
      if !derived.isEmpty { try container.encode(derived, forKey: .derived) }
    }
  }

  /// Added and removed links of a many-to-many pair, or of a to-many relationship without inverse.
  ///
  /// Links are named from the side whose ``ManagedObjectModel/Relationship/namesLinks`` is true. Adding an existing link and removing a
  /// missing one aren't errors.
  ///
  /// If a relationship is its own inverse, the lists contain each link in both directions. A destination of a to-many
  /// relationship *without* inverse belongs to one source: a new link removes it from its previous source. If a request has several such
  /// links, the last one wins. A context checks that the destinations exist. If another process has deleted one since, the store keeps the
  /// link to it or drops it.
  public struct LinkChanges: Sendable, Codable, Hashable {
    /// The index of the entity that declares the naming relationship.
    public var entity: EntityIndex
    /// The index of the naming relationship in the entity's relationships.
    public var relationship: RelationshipIndex
    /// The added links, sorted by source, then target, without duplicates.
    public var added: [Link] = []
    /// The removed links, sorted the same way. No link is in both lists.
    public var removed: [Link] = []

    /// Creates an empty record.
    public init(entity: EntityIndex, relationship: RelationshipIndex) {
      self.entity = entity
      self.relationship = relationship
    }
  }

  /// Order keys of destinations in an ordered relationship.
  ///
  /// Every new link of an ordered relationship has an order key here, and so does every destination that moved.
  public struct OrderChanges: Sendable, Codable, Hashable {
    /// The index of the entity that declares the ordered relationship.
    public var entity: EntityIndex
    /// The index of the relationship in the entity's relationships.
    public var relationship: RelationshipIndex
    /// The links, named from the relationship's side and sorted by source, then target, without duplicates.
    public var links: [Link] = []
    /// The order key of each link. A source's destinations are in ascending order of these distinct keys.
    public var keys: [Int64] = []

    /// Creates an empty record.
    public init(entity: EntityIndex, relationship: RelationshipIndex) {
      self.entity = entity
      self.relationship = relationship
    }
  }

  /// A link between two objects.
  @frozen public struct Link: Sendable, Codable, Hashable, Comparable {
    /// The key on the naming side.
    public var source: ObjectKey
    /// The key on the other side.
    public var target: ObjectKey

    /// Creates a link.
    @inlinable public init(source: ObjectKey, target: ObjectKey) {
      self.source = source
      self.target = target
    }

    /// Compares by source, then target.
    @inlinable public static func < (a: Link, b: Link) -> Bool {
      a.source != b.source ? a.source < b.source : a.target < b.target
    }
  }

  /// The ID, author and time of the save; nil if the request doesn't come from a context.
  public var origin: SaveOrigin?
  /// The changes by concrete entity, in entity order. Contains only entities with changes.
  public var entities: [EntityChanges]
  /// The changes to links.
  public var links: [LinkChanges]
  /// The order keys of ordered relationships. Apply them after the links; removing a link removes its order key.
  public var orders: [OrderChanges]
  /// Whether a store that keeps a history adds the save to it. Defaults to true; false for saves that copy another store to a new one.
  ///
  /// It isn't encoded.
  public var isKeptInHistory = true

  private enum CodingKeys: String, CodingKey { case origin, entities, links, orders }

  /// Creates a request.
  public init(entities: [EntityChanges] = [], links: [LinkChanges] = [], orders: [OrderChanges] = [], origin: SaveOrigin? = nil) {
    self.origin = origin
    self.entities = entities
    self.links = links
    self.orders = orders
  }

  /// Whether the request contains no changes.
  public var isEmpty: Bool { entities.isEmpty && links.isEmpty && orders.isEmpty }
}
