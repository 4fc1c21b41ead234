/// The changes that a row store applies together.
///
/// The lists don't overlap: no object and no link is both saved and deleted, or occurs twice.
public struct RowChanges: Sendable, Codable {
  /// A deleted object.
  public struct DeletedRow: Sendable, Hashable, Codable {
    /// The name of the concrete entity.
    public var entity: String
    /// The key.
    public var key: ObjectKey

    /// Creates a deleted object.
    public init(entity: String, key: ObjectKey) {
      self.entity = entity
      self.key = key
    }
  }

  /// Texts that the framework keeps in the store, by name: the new ones and those that change.
  ///
  /// The names begin with `holdfast`. There are at most four, with a few hundred bytes for each entity of the model.
  public var settings: [String: String] = [:]
  /// Objects to insert or replace, complete, by entity and then ascending by key.
  public var savedRows: [StoredRow] = []
  /// Objects to delete.
  public var deletedRows: [DeletedRow] = []
  /// Links to insert, or to replace because their order changes.
  public var savedLinks: [StoredLink] = []
  /// Links to delete. Missing ones aren't an error.
  public var deletedLinks: [StoredLink] = []
  /// The ID, author and time of the save; nil if the changes don't come from a context.
  public var origin: SaveOrigin?
  /// The deadline of the save. It has no cancellation.
  public var options: RequestOptions = .none

  private enum CodingKeys: String, CodingKey { case settings, savedRows, deletedRows, savedLinks, deletedLinks, origin }

  /// Creates empty changes.
  public init() {}

  /// Whether there is nothing to apply.
  public var isEmpty: Bool {
    settings.isEmpty && savedRows.isEmpty && deletedRows.isEmpty && savedLinks.isEmpty && deletedLinks.isEmpty
  }
}
