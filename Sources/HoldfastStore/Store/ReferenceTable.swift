import Synchronization

/// A two-way map between a backend's text identifiers and the keys of object IDs.
///
/// Text identifiers are UUIDs, paths or natural keys of external records. A store whose records have such identifiers opens with an identity
/// that uses references, and takes its table from there:
///
/// ```swift
/// let identity = try StoreIdentity.intern(storedUUID: uuid, model: model, usesReferences: true)
/// let id = identity.objectID(entity: person, key: identity.references.key(for: "people/anna"))
/// ```
///
/// The text of a whole number below 2^47 is its own key. Other texts get keys from 2^47 on, in the order in which they are first used.
///
/// There is one table for each store UUID in a process, so an ID keeps its meaning when the store is opened again. The table is append-only.
/// Keys of other texts differ between processes; the URI of an ID contains the text. Texts are equal if their bytes are, as in queries. The
/// table is thread-safe; a look-up takes O(1) time.
public final class ReferenceTable: Sendable {
  private struct Entries {
    /// By the bytes of the text, because Swift's equality of text ignores the normalization form.
    var keys: [[UInt8]: ObjectKey] = [:]
    /// By key, from ``ReferenceTable/firstKey`` on.
    var texts: [String] = []
    /// The keys of texts that only URIs have named so far, and the approximate memory for them.
    var mentioned: Set<ObjectKey> = []
    var mentionedByteCount = 0

    /// Approximate, for each of the three collections.
    static func byteCount(_ reference: String) -> Int { 256 + 2 * reference.utf8.count }

    /// Notes that a record has a text, which may have been named by a URI before.
    mutating func confirm(_ key: ObjectKey, _ reference: String) {
      if !mentioned.isEmpty, mentioned.remove(key) != nil { mentionedByteCount -= Entries.byteCount(reference) }
    }

    mutating func add(_ reference: String) -> ObjectKey {
      let key = ReferenceTable.firstKey.advanced(by: texts.count)
      keys[Array(reference.utf8)] = key
      texts.append(reference)
      return key
    }
  }

  /// The first key of a text that isn't a number. URIs with smaller numbers mean the same before the store is opened.
  private static let firstKey = ObjectKey(1 << 47)
  /// Guards both directions of the map.
  private let entries = Mutex(Entries())

  /// Creates an empty table.
  init() {}

  /// The number of texts with keys that aren't numbers.
  public var count: Int { entries.withLock { $0.texts.count } }

  /// The key of a text. Allocates a key if the text has none.
  public func key(for reference: String) -> ObjectKey {
    if let number = ReferenceTable.number(reference) { return number }
    return entries.withLock { entries in
      guard let known = entries.keys[Array(reference.utf8)] else { return entries.add(reference) }
      entries.confirm(known, reference)
      return known
    }
  }

  /// The maximum memory for texts that only URIs have named. They are never released, and clients can send any.
  private static let mentionedByteLimit = 64 << 20

  /// The key of a text in a URI. Nil if the text is new, and too many others were only named by URIs.
  func key(forMentioned reference: String) -> ObjectKey? {
    if let number = ReferenceTable.number(reference) { return number }
    return entries.withLock { entries in
      if let known = entries.keys[Array(reference.utf8)] { return known }
      let byteCount = entries.mentionedByteCount + Entries.byteCount(reference)
      guard byteCount <= ReferenceTable.mentionedByteLimit else { return nil }
      let key = entries.add(reference)
      entries.mentioned.insert(key)
      entries.mentionedByteCount = byteCount
      return key
    }
  }

  /// The key of a text, or nil if it has none. Numbers always have one.
  public func existingKey(for reference: String) -> ObjectKey? {
    ReferenceTable.number(reference) ?? entries.withLock { $0.keys[Array(reference.utf8)] }
  }

  /// The key of a text that is its own key; nil for other texts.
  static func number(_ text: String) -> ObjectKey? {
    guard let number = Int64(text), number >= 0, number < firstKey.rawValue, "\(number)" == text else { return nil }
    return ObjectKey(number)
  }

  /// The text of a key, or nil if no text has it.
  public func reference(for key: ObjectKey) -> String? {
    if key < ReferenceTable.firstKey { return key < 0 ? nil : "\(key)" }
    return entries.withLock { entries in
      let index = ReferenceTable.firstKey.distance(to: key)
      return index < entries.texts.count ? entries.texts[index] : nil
    }
  }
}
