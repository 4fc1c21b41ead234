internal import HoldfastSupport

/// Core Data's version hash of an entity (`NSStoreModelVersionHashesVersion` 3).
///
/// A store opens with a model whose version hashes are equal. Default values, validation, delete rules, indexes, transient properties and
/// requests of fetched properties aren't part of the hash. For a derived attribute, only its expression is.
enum ModelVersionHash {
  /// The hash of an entity.
  ///
  /// - Parameters:
  ///   - superentity: The superentity's hash, or nil if there is none.
  ///   - properties: The names and hashes of all properties, including inherited ones.
  static func hash(of entity: EntityDescription, superentity: [UInt8]?, _ properties: [(name: String, hash: [UInt8])]) -> [UInt8] {
    var bytes = Array(entity.name.utf8) + [entity.isAbstract ? 1 : 0] + (superentity ?? [])
    for (_, hash) in properties.sorted(by: { ModelOrder.bytewise($0.name, $1.name) }) { bytes += hash }
    bytes += Array((entity.versionHashModifier ?? "").utf8)
    for constraint in entity.uniquenessConstraints.map(joined).sorted(by: ModelOrder.bytewise) { bytes += Array(constraint.utf8) }
    return SHA256.hash(bytes)
  }

  /// The names separated by points. Written by hand: the first `joined()` of a process takes longer than ten hashes, to create types.
  private static func joined(_ names: [String]) -> String {
    var text = names.first ?? ""
    for name in names.dropFirst() {
      text += "."
      text += name
    }
    return text
  }

  /// One digest of all hashes, including names.
  static func digest(_ hashes: [String: [UInt8]]) -> String { digest(hashes.map { (name: $0.key, hash: $0.value) }) }

  /// One digest of all hashes, including names, in any order.
  static func digest(_ hashes: [(name: String, hash: [UInt8])]) -> String {
    var bytes: [UInt8] = []
    for (name, hash) in hashes.sorted(by: { ModelOrder.bytewise($0.name, $1.name) }) {
      bytes += name.utf8
      bytes += hash
    }
    return Base64.encode(SHA512.hash(bytes))
  }

  /// One digest of all hashes, without names.
  static func checksum(_ hashes: [String: [UInt8]]) -> String { Base64.encode(SHA256.hash(byName(hashes).flatMap(\.value))) }

  private static func byName(_ hashes: [String: [UInt8]]) -> [(key: String, value: [UInt8])] {
    hashes.sorted { ModelOrder.bytewise($0.key, $1.key) }
  }

  /// The names and hashes of the properties that an entity declares itself.
  static func properties(of entity: EntityDescription) -> [(name: String, hash: [UInt8])] {
    entity.attributes.filter { !$0.isTransient }.map { ($0.name, hash(of: $0)) }
      + entity.relationships.filter { !$0.isTransient }.map { ($0.name, hash(of: $0, in: entity)) }
      + entity.fetchedProperties.filter { !$0.isTransient }.map { ($0.name, hash(of: $0)) }
  }

  private static func base(_ name: String, isOptional: Bool, modifier: String?) -> [UInt8] {
    SHA256.hash(Array(name.utf8) + [isOptional ? 1 : 0, 0] + Array((modifier ?? "").utf8))
  }

  private static func hash(of attribute: AttributeDescription) -> [UInt8] {
    if let expression = attribute.derivationExpression {
      return SHA256.hash(Array((Derivation(expression)?.description ?? expression).utf8))
    }
    let base = base(attribute.name, isOptional: attribute.isOptional, modifier: attribute.versionHashModifier)
    let isFlagged = attribute.allowsExternalBinaryDataStorage || attribute.preservesValueInHistoryOnDeletion
    return SHA256.hash(base + littleEndian(attribute.type.coreDataCode) + (isFlagged ? [1] : []))
  }

  private static func hash(of property: FetchedPropertyDescription) -> [UInt8] {
    SHA256.hash(base(property.name, isOptional: property.isOptional, modifier: property.versionHashModifier))
  }

  private static func hash(of relationship: RelationshipDescription, in entity: EntityDescription) -> [UInt8] {
    let base = base(relationship.name, isOptional: relationship.isOptional, modifier: relationship.versionHashModifier)
    let isItsOwnInverse = relationship.inverse == relationship.name && relationship.destination == entity.name
    return SHA256.hash(
      base + Array(relationship.destination.utf8) + Array((isItsOwnInverse ? "" : relationship.inverse ?? "").utf8)
        + littleEndian(UInt32(truncatingIfNeeded: relationship.maxCount)) + littleEndian(UInt32(truncatingIfNeeded: relationship.minCount))
        + (relationship.isOrdered ? [1, 0] : []))
  }

  private static func littleEndian(_ value: UInt32) -> [UInt8] {
    withUnsafeBytes(of: value.littleEndian) { Array($0) }
  }
}

extension ManagedObjectModel {
  /// The digest of all version hashes: SHA-256 in base64.
  ///
  /// Core Data stores it as `NSStoreModelVersionChecksumKey`.
  public var versionChecksum: String {
    ModelVersionHash.checksum(entityVersionHashesByName)
  }

  /// The version hash of each entity, by entity name. Each has 32 bytes.
  ///
  /// Stores keep these hashes of the model that they were created with.
  public var entityVersionHashesByName: [String: [UInt8]] {
    Dictionary(uniqueKeysWithValues: entities.map { ($0.name, $0.versionHash) })
  }
}

/// Base64 (RFC 4648) without line breaks.
enum Base64 {
  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func encode(_ bytes: [UInt8]) -> String {
    var out: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - group.count))
      for place in 0..<4 {
        out.append(place <= group.count ? digits[Int(bits >> (18 - 6 * UInt32(place)) & 63)] : UInt8(ascii: "="))
      }
    }
    return String(decoding: out, as: UTF8.self)
  }
}
