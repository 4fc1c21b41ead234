import Synchronization

/// Maps the texts by which an outside world knows its records (UUIDs, paths, natural keys) to the whole-number keys
/// of object IDs, both ways. Append-only: a text keeps its key as long as the table lives.
///
/// A store whose records have text keys owns one table per root entity family it serves, or one for all, and passes
/// it to ``StoreIdentity/intern(storeUUID:model:references:)``. Keys are handed out from 1 upwards. Thread-safe;
/// every look-up is one hash.
public final class ReferenceTable: Sendable {
  private struct Entries {
    var keys: [String: Int64] = [:]
    var texts: [String] = []
  }

  /// Guards both directions of the map.
  private let entries = Mutex(Entries())

  /// Makes an empty table.
  public init() {}

  /// How many texts have keys.
  public var count: Int { entries.withLock { $0.texts.count } }

  /// The key of a text, made when it has none.
  public func key(for reference: String) -> Int64 {
    entries.withLock { entries in
      if let key = entries.keys[reference] { return key }
      entries.texts.append(reference)
      let key = Int64(entries.texts.count)
      entries.keys[reference] = key
      return key
    }
  }

  /// The key of a text, or nil when it has none.
  public func existingKey(for reference: String) -> Int64? {
    entries.withLock { $0.keys[reference] }
  }

  /// The text that a key stands for, or nil for a key that the table never handed out.
  public func reference(for key: Int64) -> String? {
    entries.withLock { key >= 1 && key <= Int64($0.texts.count) ? $0.texts[Int(key) - 1] : nil }
  }
}
