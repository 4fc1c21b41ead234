/// What one save changes in one store. It holds sealed rows and becomes values only when it is coded.
///
/// The store applies: inserted rows, updated rows, new and removed links, deletions, then derived values. Every row in the request
/// carries the version that it has *after* the save; where there was a row before, the version that the context had
/// read stands beside it, and the store refuses the whole request when one no longer holds.
public struct SaveRequest: Sendable, Codable {
  /// Rows that changed, with what changed in them.
  public struct UpdatedRows: Sendable, Codable {
    /// The rows as they are to be.
    public var rows: RowBatch
    /// The version of each row before.
    public var expectedVersions: [Int64]
    /// For each row, which slots differ from before: slot 0 is the lowest bit of the first word, and each row has
    /// ``wordsPerRow`` words. A row in which no bit is set changes its version only.
    ///
    /// A slot of a derived attribute (``ManagedObjectModel/Entity/derivedAttributes``) that is not marked keeps what the store has in it,
    /// which others may have changed without raising the version.
    public var changedSlots: [UInt64]
    /// The words of one row.
    public var wordsPerRow: Int

    /// Makes updated rows.
    public init(rows: RowBatch, expectedVersions: [Int64], changedSlots: [UInt64], wordsPerRow: Int) {
      self.rows = rows
      self.expectedVersions = expectedVersions
      self.changedSlots = changedSlots
      self.wordsPerRow = wordsPerRow
    }

    /// Whether a slot of a row differs from before.
    public func isChanged(row: Int, slot: Int) -> Bool {
      changedSlots[row * wordsPerRow + slot / 64] & 1 << UInt64(slot % 64) != 0
    }

    private enum CodingKeys: String, CodingKey { case rows, expectedVersions, changedSlots, wordsPerRow }

    /// Decodes rows from values.
    public init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      rows = try container.decode(CodedRows.self, forKey: .rows).batch()
      expectedVersions = try container.decode([Int64].self, forKey: .expectedVersions)
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

  /// Rows by key and the versions that the context had read.
  public struct KeyedRows: Sendable, Codable, Hashable {
    /// The keys, ascending.
    public var keys: [Int64]
    /// The version of each before.
    public var expectedVersions: [Int64]

    /// Makes the pair of lists.
    public init(keys: [Int64] = [], expectedVersions: [Int64] = []) {
      self.keys = keys
      self.expectedVersions = expectedVersions
    }
  }

  /// What happens to the rows of one concrete entity.
  public struct EntityChanges: Sendable, Codable {
    /// The entity's index.
    public var entity: Int
    /// New rows, ascending by key across the batches.
    public var inserted: [RowBatch] = []
    /// Changed rows, ascending by key across the batches.
    public var updated: [UpdatedRows] = []
    /// Rows to be removed. The store also severs what pointed to them through relationships whose inverse (the one
    /// declared by the deleted object's entity) has a delete rule other than ``DeleteRule/noAction``: links are
    /// removed, keys in other rows set to nil and those rows' versions raised by 1 (once, however many of a row's keys go),
    /// all set-wise and after the updates of the same request. Links of to-many relationships without inverse go with their
    /// targets.
    public var deleted = KeyedRows()
    /// Rows that are only to be compared with their expected versions.
    public var locked = KeyedRows()
    /// Values of derived attributes that follow from other objects; to be applied after everything else.
    public var derived: [DerivedRows] = []

    /// Makes an empty record.
    public init(entity: Int) { self.entity = entity }

    private enum CodingKeys: String, CodingKey { case entity, inserted, updated, deleted, locked, derived }

    /// Decodes rows from values.
    public init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      entity = try container.decode(Int.self, forKey: .entity)
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

  /// New and removed links of one many-to-many pair, named from the side whose
  /// ``ManagedObjectModel/Relationship/namesLinks`` is true. A link that is added though it is there, or removed
  /// though it is not, is no error.
  ///
  /// Links of a relationship that is its own inverse are named from both ends: both pairs stand in the lists. A target of a
  /// to-many relationship *without* inverse belongs to one source only: a new link takes it away from another, and of
  /// several in one request the last one stays.
  public struct LinkChanges: Sendable, Codable, Hashable {
    /// The index of the entity that declares the naming relationship.
    public var entity: Int
    /// The place of the naming relationship among the entity's relationships.
    public var relationship: Int
    /// The new links, sorted by source, then target, without repetition.
    public var added: [Link] = []
    /// The removed links, sorted likewise. No link is in both lists.
    public var removed: [Link] = []

    /// Makes an empty record.
    public init(entity: Int, relationship: Int) {
      self.entity = entity
      self.relationship = relationship
    }
  }

  /// Where targets stand among those of their source, for an ordered relationship. Every new link of one has a key here; so
  /// have targets that moved.
  public struct OrderChanges: Sendable, Codable, Hashable {
    /// The index of the entity that declares the ordered relationship.
    public var entity: Int
    /// The place of the relationship among the entity's relationships.
    public var relationship: Int
    /// The links, from the side of the relationship, sorted by source, then target, without repetition.
    public var links: [Link] = []
    /// The key of each: targets of one source stand in ascending order of their keys, which are different.
    public var keys: [Int64] = []

    /// Makes an empty record.
    public init(entity: Int, relationship: Int) {
      self.entity = entity
      self.relationship = relationship
    }
  }

  /// A link between two objects.
  @frozen public struct Link: Sendable, Codable, Hashable, Comparable {
    /// The key on the naming side.
    public var source: Int64
    /// The key on the other side.
    public var target: Int64

    /// Makes a link.
    @inlinable public init(source: Int64, target: Int64) {
      self.source = source
      self.target = target
    }

    /// By source, then target.
    @inlinable public static func < (a: Link, b: Link) -> Bool {
      a.source != b.source ? a.source < b.source : a.target < b.target
    }
  }

  /// The changes by concrete entity, in the order of entities; only entities with changes.
  public var entities: [EntityChanges]
  /// The changes of many-to-many links.
  public var links: [LinkChanges]
  /// The keys by which targets of ordered relationships stand; to be applied when the links are there. A key goes with its
  /// link.
  public var orders: [OrderChanges]

  /// Makes a request.
  public init(entities: [EntityChanges] = [], links: [LinkChanges] = [], orders: [OrderChanges] = []) {
    self.entities = entities
    self.links = links
    self.orders = orders
  }

  /// Whether nothing changes.
  public var isEmpty: Bool { entities.isEmpty && links.isEmpty && orders.isEmpty }
}

/// Changes rows without objects. No context sees it happen.
public enum BatchRequest: Sendable, Hashable, Codable {
  /// Removes all rows of an entity, by its index, for which the predicate holds.
  case delete(entity: Int, predicate: QueryExpression?)
  /// Sets slots of all rows of an entity for which the predicate holds.
  case update(entity: Int, predicate: QueryExpression?, values: [Int: StoreValue])
}

/// What a batch request did.
public struct BatchResult: Sendable, Hashable, Codable {
  /// How many rows were changed or removed.
  public var rowCount: Int

  /// Makes a result.
  public init(rowCount: Int) { self.rowCount = rowCount }
}

/// Asks what was changed after a point in the store's history.
public struct HistoryRequest: Sendable, Hashable, Codable {
  /// The number of the last transaction that the caller knows; 0 for none.
  public var afterTransaction: Int64

  /// Makes a request.
  public init(afterTransaction: Int64) { self.afterTransaction = afterTransaction }
}

/// A saved transaction in a store's history.
public struct HistoryTransaction: Sendable, Hashable, Codable {
  /// The number, ascending.
  public var number: Int64
  /// Seconds since 2001-01-01T00:00:00Z.
  public var timestamp: Double
  /// The inserted, updated and deleted objects.
  public var inserted: [ManagedObjectID]
  /// The updated objects.
  public var updated: [ManagedObjectID]
  /// The deleted objects.
  public var deleted: [ManagedObjectID]

  /// Makes a transaction.
  public init(number: Int64, timestamp: Double, inserted: [ManagedObjectID], updated: [ManagedObjectID], deleted: [ManagedObjectID]) {
    self.number = number
    self.timestamp = timestamp
    self.inserted = inserted
    self.updated = updated
    self.deleted = deleted
  }
}
