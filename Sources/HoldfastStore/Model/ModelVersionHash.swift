internal import HoldfastSupport

/// Core Data's version hash of an entity (COREDATA: `NSStoreModelVersionHashesVersion` 3): which declarations make a
/// store compatible with a model. Default values, validation, delete rules, indexes, transient properties and the requests of fetched
/// properties do not count; of a derived attribute only its expression does.
enum ModelVersionHash {
  /// The hash of an entity.
  ///
  /// - Parameters:
  ///   - superentity: the super entity's hash; nil for none.
  ///   - properties: names and hashes of all properties, inherited ones included.
  static func hash(of entity: EntityDescription, superentity: [UInt8]?, _ properties: [(name: String, hash: [UInt8])]) -> [UInt8] {
    var bytes = Array(entity.name.utf8) + [entity.isAbstract ? 1 : 0] + (superentity ?? [])
    for (_, hash) in properties.sorted(by: { ModelOrder.bytewise($0.name, $1.name) }) { bytes += hash }
    bytes += Array((entity.versionHashModifier ?? "").utf8)
    for constraint in entity.uniquenessConstraints.map(joined).sorted(by: ModelOrder.bytewise) { bytes += Array(constraint.utf8) }
    return SHA256.hash(bytes)
  }

  /// The names with points between them. By hand: the first `joined()` of a process makes types for longer than ten hashes take.
  private static func joined(_ names: [String]) -> String {
    var text = names.first ?? ""
    for name in names.dropFirst() {
      text += "."
      text += name
    }
    return text
  }

  /// All hashes as one, names included.
  static func digest(_ hashes: [String: [UInt8]]) -> String {
    Base64.encode(SHA512.hash(byName(hashes).flatMap { Array($0.key.utf8) + $0.value }))
  }

  /// All hashes as one.
  static func checksum(_ hashes: [String: [UInt8]]) -> String { Base64.encode(SHA256.hash(byName(hashes).flatMap(\.value))) }

  private static func byName(_ hashes: [String: [UInt8]]) -> [(key: String, value: [UInt8])] {
    hashes.sorted { ModelOrder.bytewise($0.key, $1.key) }
  }

  /// Names and hashes of the properties that an entity declares itself.
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
  /// The digest of all entities' names and version hashes that Core Data keeps with a store as
  /// `NSStoreModelVersionHashesDigest`: base64 of a SHA-512.
  public var versionDigest: String {
    ModelVersionHash.digest(entityVersionHashesByName)
  }

  /// The checksum of all entities' version hashes that Core Data keeps as `NSStoreModelVersionChecksumKey`: base64 of
  /// a SHA-256.
  public var versionChecksum: String {
    ModelVersionHash.checksum(entityVersionHashesByName)
  }

  /// The version hash of each entity, 32 bytes, by the entity's name: what stores keep of the model that they were made with.
  public var entityVersionHashesByName: [String: [UInt8]] {
    Dictionary(uniqueKeysWithValues: entities.map { ($0.name, $0.versionHash) })
  }
}

/// Base64 of RFC 4648 without line breaks.
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
