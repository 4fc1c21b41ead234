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
/// Keys differ between processes; the URI of an ID contains the text. Texts are equal if their bytes are, as in queries. The table is
/// thread-safe; a look-up takes O(1) time.
public final class ReferenceTable: Sendable {
  private struct Entries {
    /// By the bytes of the text, because Swift's equality of text ignores the normalization form.
    var keys: [[UInt8]: ObjectKey] = [:]
    var texts: [ObjectKey: String] = [:]
    private var last = ObjectKey(0)

    mutating func add(_ reference: String, _ key: ObjectKey? = nil) -> ObjectKey {
      let new = key ?? next()
      keys[Array(reference.utf8)] = new
      texts[new] = reference
      return new
    }

    /// The next key, without those that a URI used before.
    private mutating func next() -> ObjectKey {
      repeat { last = ObjectKey(last.rawValue + 1) } while texts[last] != nil
      return last
    }
  }

  /// Guards both directions of the map.
  private let entries = Mutex(Entries())

  /// Creates an empty table.
  init() {}

  /// The number of texts with keys.
  public var count: Int { entries.withLock { $0.texts.count } }

  /// The key of a text. Allocates a key if the text has none.
  public func key(for reference: String) -> ObjectKey {
    entries.withLock { $0.keys[Array(reference.utf8)] ?? $0.add(reference) }
  }

  /// Gives the texts of numbers these numbers as keys. URIs with them were used before the store was opened.
  func add(_ numbers: Set<ObjectKey>) {
    entries.withLock { entries in for key in numbers where entries.texts[key] == nil { _ = entries.add("\(key)", key) } }
  }

  /// The key of a text, or nil if it has none.
  public func existingKey(for reference: String) -> ObjectKey? {
    entries.withLock { $0.keys[Array(reference.utf8)] }
  }

  /// The text of a key, or nil if the table never allocated the key.
  public func reference(for key: ObjectKey) -> String? {
    entries.withLock { $0.texts[key] }
  }
}
