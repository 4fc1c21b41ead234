import Synchronization

/// A two-way map between a backend's text identifiers and the keys of object IDs.
///
/// Text identifiers are UUIDs, paths or natural keys of external records. A store whose records have such identifiers opens with an identity
/// that uses references, and takes its table from there:
///
/// ```swift
/// let identity = StoreIdentity.intern(storeUUID: uuid, model: model, usesReferences: true)
/// let id = identity.objectID(entity: person, key: identity.references.key(for: "people/anna"))
/// ```
///
/// There is one table for each store UUID in a process, so an ID keeps its meaning when the store is opened again. The table is append-only.
/// Keys start at 1 and differ between processes; the URI of an ID contains the text. The table is thread-safe; a look-up takes O(1) time.
public final class ReferenceTable: Sendable {
  private struct Entries {
    var keys: [String: ObjectKey] = [:]
    var texts: [String] = []
  }

  /// Guards both directions of the map.
  private let entries = Mutex(Entries())

  /// Creates an empty table.
  init() {}

  /// The number of texts with keys.
  public var count: Int { entries.withLock { $0.texts.count } }

  /// The key of a text. Allocates a key if the text has none.
  public func key(for reference: String) -> ObjectKey {
    entries.withLock { entries in
      if let key = entries.keys[reference] { return key }
      entries.texts.append(reference)
      let key = ObjectKey(entries.texts.count)
      entries.keys[reference] = key
      return key
    }
  }

  /// The key of a text, or nil if it has none.
  public func existingKey(for reference: String) -> ObjectKey? {
    entries.withLock { $0.keys[reference] }
  }

  /// The text of a key, or nil if the table never allocated the key.
  public func reference(for key: ObjectKey) -> String? {
    entries.withLock { key >= 1 && key.rawValue <= $0.texts.count ? $0.texts[Int(key.rawValue) - 1] : nil }
  }
}
