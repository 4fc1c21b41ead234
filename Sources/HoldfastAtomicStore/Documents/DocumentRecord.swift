public import HoldfastStore

/// An object in a document: its entity, key, version, values and destinations, by name.
///
/// A format of text uses ``fields``, in which every value is text. A format with types uses ``values``, ``targets`` and ``orderKeys``.
public struct DocumentRecord: Sendable, Hashable {
  /// The name of the concrete entity.
  public var entity: String
  /// The key, unique among all entities with the same root.
  public var key: Int64
  /// The number of times that the row was changed. Defaults to 1.
  public var version: Int64
  /// The values of attributes, by name. Missing values are left out. An element of a composite attribute has its path as its name.
  ///
  /// The destination of a to-one relationship is its key, as a whole number. When a file is read, text is converted to the attribute's type;
  /// see ``fields``.
  public var values: [String: StoreValue]
  /// The keys of destinations, by the name of the to-many relationship, for relationships whose links the other side doesn't have.
  ///
  /// These are one side of each many-to-many pair, to-many relationships without an inverse, and ordered relationships.
  public var targets: [String: [Int64]]
  /// The order keys of ordered relationships, by name, in the order of ``targets``. Left out if they are the usual ones.
  public var orderKeys: [String: [Int64]]

  /// Creates a record.
  public init(
    entity: String, key: Int64, version: Int64 = 1, values: [String: StoreValue] = [:], targets: [String: [Int64]] = [:],
    orderKeys: [String: [Int64]] = [:]
  ) {
    self.entity = entity
    self.key = key
    self.version = version
    self.values = values
    self.targets = targets
    self.orderKeys = orderKeys
  }
}

// MARK: Text

extension DocumentRecord {
  private static let keyField = "$key", versionField = "$version", orderSuffix = "$order"

  /// The record as text, by name.
  ///
  /// | field | text |
  /// |---|---|
  /// | `$key` | the key |
  /// | `$version` | the version, unless it is 1 |
  /// | numbers | decimal digits, as in Swift. `nan`, `inf` and `-inf` for floating-point numbers |
  /// | Boolean values | `true` or `false` |
  /// | dates | seconds since 2001-01-01T00:00:00Z |
  /// | text and URIs | themselves |
  /// | bytes | base64, or `@` and the UUID of an external file |
  /// | UUIDs, object IDs | the UUID; the ID's URI |
  /// | relationships | the keys of the destinations, separated by spaces |
  /// | a relationship's name and `$order` | the order keys, unless they are the usual ones |
  ///
  /// Text can contain any character, such as line breaks and zero.
  public var fields: [String: String] {
    var fields = values.mapValues(\.documentText)
    fields[Self.keyField] = String(key)
    if version != 1 { fields[Self.versionField] = String(version) }
    for (name, keys) in targets { fields[name] = keys.map(String.init).joined(separator: " ") }
    for (name, keys) in orderKeys { fields[name + Self.orderSuffix] = keys.map(String.init).joined(separator: " ") }
    return fields
  }

  /// Creates a record from its ``fields``. The store checks them when it reads the file.
  public init(entity: String, fields: [String: String]) {
    self.init(entity: entity, key: fields[Self.keyField].flatMap { Int64($0) } ?? 0)
    for (name, text) in fields {
      switch name {
      case Self.keyField: break
      case Self.versionField: version = Int64(text) ?? 0
      case _ where name.hasSuffix(Self.orderSuffix):
        orderKeys[String(name.dropLast(Self.orderSuffix.count))] = Self.keys(text) ?? []
      default: values[name] = .string(text)
      }
    }
  }

  /// The first record of two documents that the other one doesn't contain, regardless of the order; nil if both contain the same. Text is
  /// compared by its bytes.
  static func firstDifference(_ a: [DocumentRecord], _ b: [DocumentRecord]) -> DocumentRecord? {
    func sorted(_ records: [DocumentRecord]) -> [DocumentRecord] { records.sorted { ($0.entity, $0.key) < ($1.entity, $1.key) } }
    let (a, b) = (sorted(a), sorted(b))
    for (first, second) in zip(a, b) where first.entity != second.entity || !first.hasSameFields(as: second) { return first }
    return a.count == b.count ? nil : (a.count > b.count ? a : b)[min(a.count, b.count)]
  }

  private func hasSameFields(as other: DocumentRecord) -> Bool {
    let fields = fields, others = other.fields
    return fields.count == others.count
      && fields.allSatisfy { name, text in others[name]?.utf8.elementsEqual(text.utf8) == true }
  }

  /// The keys in a text; nil if it contains something else.
  static func keys(_ text: String) -> [Int64]? {
    let parts = text.split(separator: " ", omittingEmptySubsequences: true)
    let keys = parts.compactMap { Int64($0) }
    return keys.count == parts.count ? keys : nil
  }
}
