public import HoldfastStore

/// An object in a document: its entity, key, version, values and destinations, by name.
///
/// A text format uses ``fields``, in which every value is text. A format with types uses ``values``, ``targets`` and ``orderKeys``.
public struct DocumentRecord: Sendable, Hashable {
  /// The name of the concrete entity.
  public var entity: String
  /// The key, unique among all entities with the same root.
  public var key: ObjectKey
  /// The row's version: 1 in a new row, raised by 1 with each change. Defaults to 1.
  public var version: RowVersion
  /// The values of attributes and the keys of to-one destinations, by name. Missing values are left out.
  ///
  /// The name of an element of a composite attribute is its path. The key of a to-one destination is an `int64`. When the store reads a
  /// file, it converts text to the attribute's type; see ``fields``.
  public var values: [String: StoreValue]
  /// The keys of to-many destinations, by the name of the relationship.
  ///
  /// Records contain ordered relationships, to-many relationships without an inverse, and one side of each many-to-many pair.
  public var targets: [String: [ObjectKey]]
  /// The order keys of ordered relationships, by name, in the order of ``targets``. Left out if they are those of ``UsualOrder``.
  public var orderKeys: [String: [Int64]]

  /// Creates a record.
  public init(
    entity: String, key: ObjectKey, version: RowVersion = 1, values: [String: StoreValue] = [:], targets: [String: [ObjectKey]] = [:],
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
  /// | text and URIs | the unchanged text |
  /// | bytes | base64, or `@` and the UUID of an external file |
  /// | UUIDs | the UUID |
  /// | object IDs | the URI of the ID |
  /// | relationships | the keys of the destinations, separated by spaces |
  /// | a relationship's name followed by `$order` | the order keys, unless they are those of ``UsualOrder`` |
  ///
  /// Text can contain any character, including line breaks and NUL.
  public var fields: [String: String] {
    var fields = values.mapValues(\.documentText)
    fields[Self.keyField] = "\(key)"
    if version != 1 { fields[Self.versionField] = version.description }
    for (name, keys) in targets { fields[name] = keys.map(\.description).joined(separator: " ") }
    for (name, keys) in orderKeys { fields[name + Self.orderSuffix] = keys.map(String.init).joined(separator: " ") }
    return fields
  }

  /// Creates a record from its ``fields``. The store checks them when it reads the file.
  public init(entity: String, fields: [String: String]) {
    self.init(entity: entity, key: fields[Self.keyField].flatMap { Int64($0) }.map { ObjectKey($0) } ?? 0)
    for (name, text) in fields {
      switch name {
      case Self.keyField: break
      case Self.versionField: version = RowVersion(Int64(text) ?? -1)
      case _ where name.hasSuffix(Self.orderSuffix):
        orderKeys[String(name.dropLast(Self.orderSuffix.count))] = Self.numbers(text) ?? []
      default: values[name] = .string(text)
      }
    }
  }

  /// The first record, by entity and key, that differs between two documents; nil if none differs.
  ///
  /// - Parameters:
  ///   - records: The records that a format has written.
  ///   - decoded: The records that it returns for the same file, in any order. Values can be text; see ``fields``.
  static func firstDifference(_ records: [DocumentRecord], _ decoded: [DocumentRecord]) -> DocumentRecord? {
    func precedes(_ a: DocumentRecord, _ b: DocumentRecord) -> Bool { (a.entity, a.key) < (b.entity, b.key) }
    let (a, b) = (records.sorted(by: precedes), decoded.sorted(by: precedes))
    for (first, second) in zip(a, b) {
      if precedes(second, first) { return second }
      if precedes(first, second) || !first.isWritten(as: second) { return first }
    }
    return a.count == b.count ? nil : (a.count > b.count ? a : b)[min(a.count, b.count)]
  }

  /// Whether the record has destinations of a relationship, as keys or as text.
  func hasTargets(_ name: String) -> Bool { targets[name] != nil || values[name] != nil }

  private func isWritten(as decoded: DocumentRecord) -> Bool {
    var others = decoded.values.filter { $0.value != .null }
    for (name, value) in values where value != .null {
      guard let other = others.removeValue(forKey: name), DocumentRecord.isWritten(value, as: other) else { return false }
    }
    for (name, keys) in targets where keys != decoded.targets[name] {
      guard case .string(let text)? = others.removeValue(forKey: name), DocumentRecord.numbers(text)?.map({ ObjectKey($0) }) == keys else {
        return false
      }
    }
    return others.isEmpty && version == decoded.version && orderKeys == decoded.orderKeys
      && decoded.targets.keys.allSatisfy { targets[$0] != nil }
  }

  /// Whether loading a decoded value results in the written one.
  private static func isWritten(_ value: StoreValue, as decoded: StoreValue) -> Bool {
    switch (value, decoded) {
    case (.string, .string): value == decoded
    case (_, .string(let text)): text.utf8.elementsEqual(value.documentText.utf8)
    case (.bool, .int64), (.int16, .int64), (.int32, .int64): value.integer == decoded.integer
    case (.float, .double): value.real == decoded.real || value.isNaN && decoded.isNaN
    default: value == decoded || value.isNaN && decoded.isNaN && value.documentText == decoded.documentText
    }
  }

  /// The numbers in a text; nil if it contains something else.
  static func numbers(_ text: String) -> [Int64]? {
    let parts = text.split(separator: " ", omittingEmptySubsequences: true)
    let numbers = parts.compactMap { Int64($0) }
    return numbers.count == parts.count ? numbers : nil
  }
}
