/// Identifies an object in a store.
///
/// An ID has 16 bytes; it is cheap to copy, compare and hash. Two IDs are equal if their store, **root** entity and key are equal. Keys are
/// unique among all entities with the same root, and the ID in a link may contain the declared entity instead of the concrete one. The
/// operator `==` describes IDs that were created before the store was opened.
///
/// The ID of an unsaved object is *temporary*: its key is negative, and it belongs to no store. Saving replaces it with a permanent ID.
///
/// An ID is encoded as the URI ``uriRepresentation``, and can be decoded without a coordinator.
@frozen public struct ManagedObjectID: Sendable {
  /// The number of the store in this process; see ``StoreIdentity``.
  public let storeNumber: UInt32
  /// A number that stands for the root entity within the store's identity. An ID that was created before the store was opened has another
  /// one.
  public let rootNumber: UInt16
  /// The number of the concrete entity within the store's identity.
  public let entityNumber: UInt16
  /// The key: zero or positive in a store, negative for a temporary ID.
  public let key: ObjectKey

  /// Creates an ID from its components. Stores use ``StoreIdentity/objectID(entity:key:)``.
  @inlinable public init(storeNumber: UInt32, rootNumber: UInt16, entityNumber: UInt16, key: ObjectKey) {
    self.storeNumber = storeNumber
    self.rootNumber = rootNumber
    self.entityNumber = entityNumber
    self.key = key
  }

  /// Whether the object has never been saved.
  @inlinable public var isTemporaryID: Bool { key < 0 }

  /// The identity of the store.
  public var identity: StoreIdentity { StoreIdentity.known(storeNumber) }

  /// The UUID of the store as text, or nil for a temporary ID.
  public var storeIdentifier: String? { isTemporaryID ? nil : identity.storeUUID }

  /// The name of the concrete entity.
  public var entityName: String { identity.entityName(entityNumber) }

  /// The ID as a URI in Core Data's format.
  ///
  /// A permanent ID is `x-coredata://STORE-UUID/Entity/pKEY`, a temporary one `x-coredata:///Entity/tKEY`.
  public var uriRepresentation: String {
    if isTemporaryID { return "x-coredata:///\(entityName)/t\(key.rawValue.magnitude)" }
    return "x-coredata://\(identity.storeUUID)/\(entityName)/p\(URIText.escaped(identity.referenceText(for: key)))"
  }

  /// Creates the ID that a URI names.
  ///
  /// The process keeps the names of stores and entities in URIs, up to 64 MiB. It also keeps text identifiers of records that the store
  /// hasn't read yet, up to 64 MiB for each store.
  ///
  /// - Returns: Nil if the text isn't the URI of a permanent ID. Also nil if this process hasn't opened the store, and the URI contains a text
  ///   identifier or a key from 2^47 on. Also nil if the process doesn't know the store, the entity or the text identifier, and has no room
  ///   for more of them.
  public init?(uriRepresentation uri: String) {
    guard let parts = Self.parts(of: uri), let identity = StoreIdentity.mentioned(uuid: parts.store),
      let key = identity.key(forReference: parts.reference, isStored: false), key >= 0,
      let id = identity.objectID(mentionedEntity: parts.entity, key: key, isStored: false)
    else { return nil }
    self = id
  }

  /// Creates the ID that a URI in a store's data names, so that it can be kept.
  ///
  /// If ``init(uriRepresentation:)`` returns nil because the store that the URI names isn't open, the ID has this URI, but isn't equal to
  /// an ID of that store, and no context has an object with it. Once the store is open, create another ID from the URI.
  ///
  /// - Returns: Nil if the text isn't the URI of a permanent ID.
  public init?(storedURI uri: String) {
    guard let parts = Self.parts(of: uri) else { return nil }
    let identity = StoreIdentity.known(uuid: parts.store)
    if let key = identity.key(forReference: parts.reference, isStored: true), key >= 0,
      let id = identity.objectID(mentionedEntity: parts.entity, key: key, isStored: true)
    {
      self = id
      return
    }
    let other = StoreIdentity.unopened(uuid: parts.store), key = other.references.key(for: parts.reference)
    guard let id = other.objectID(mentionedEntity: parts.entity, key: key, isStored: true) else { return nil }
    self = id
  }

  /// The parts of the URI of a permanent ID; nil for another text. Keeps nothing, unlike an ID.
  package static func parts(of uri: String) -> (store: String, entity: String, reference: String)? {
    let scheme = "x-coredata://"
    guard uri.hasPrefix(scheme) else { return nil }
    let parts = uri.dropFirst(scheme.count).split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, !parts[0].isEmpty, !parts[1].isEmpty, parts[2].hasPrefix("p"),
      let reference = URIText.unescaped(parts[2].dropFirst())
    else { return nil }
    return (String(parts[0]), String(parts[1]), reference)
  }
}

extension ManagedObjectID: Hashable {
  /// Whether both IDs identify the same object: their store, root entity and key are equal.
  ///
  /// The root entity is known once the process has opened the store. An ID that was created before, for example decoded, equals each ID of
  /// the object that is created afterwards. Two that were created before are equal only if they name the same entity, and stay unequal
  /// otherwise, so that a set can contain both. If the process also opens the store with another version of the model, in which the
  /// object's root entity is another one, IDs from before and after that aren't equal.
  @inlinable public static func == (a: ManagedObjectID, b: ManagedObjectID) -> Bool {
    a.key == b.key && a.storeNumber == b.storeNumber && (a.rootNumber == b.rootNumber || a.isOfFamily(of: b))
  }

  /// Hashes the store, key and root entity. Leaves out a root entity that some IDs don't contain.
  @inlinable public func hash(into hasher: inout Hasher) {
    hasher.combine(key)
    hasher.combine(UInt64(storeNumber) << 16 | UInt64(min(rootNumber, Self.mixedRoots)))
  }

  /// The first root number of families with IDs that don't contain the root, because they were created before it was known.
  @inlinable static var mixedRoots: UInt16 { 0x8000 }
  /// The first number of an unknown root. The entity's own number is added, so that equal numbers always mean equal objects.
  static var unknownRoots: UInt16 { 0xC000 }

  /// Whether two IDs of a store are of the same family, although they contain different root numbers.
  ///
  /// That is possible only if the root of exactly one of them was unknown.
  @usableFromInline func isOfFamily(of other: ManagedObjectID) -> Bool {
    let (early, late) = rootNumber < other.rootNumber ? (other, self) : (self, other)
    guard early.rootNumber >= Self.unknownRoots, (Self.mixedRoots..<Self.unknownRoots).contains(late.rootNumber) else { return false }
    return early.entityNumber == late.entityNumber || identity.rootNumber(early.entityNumber) == late.rootNumber
  }
}

extension ManagedObjectID: Codable {
  /// The key with which a decoder of stored data reads IDs as ``init(storedURI:)`` does.
  package static let isStored = CodingUserInfoKey(rawValue: "holdfast.isStored")

  /// Decodes an ID from its URI.
  ///
  /// - Throws: `DecodingError` if ``init(uriRepresentation:)`` returns nil for it.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let uri = try container.decode(String.self)
    let isStored = Self.isStored.map { decoder.userInfo.keys.contains($0) } ?? false
    guard let id = isStored ? ManagedObjectID(storedURI: uri) : ManagedObjectID(uriRepresentation: uri) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "The text isn't the URI of a saved object.")
    }
    self = id
  }

  /// Encodes the ID as its URI.
  ///
  /// - Throws: `EncodingError` for a temporary ID, which is valid only in its context.
  public func encode(to encoder: any Encoder) throws {
    if isTemporaryID {
      throw EncodingError.invalidValue(
        self, .init(codingPath: encoder.codingPath, debugDescription: "A temporary object ID can't be encoded. Save the object first."))
    }
    var container = encoder.singleValueContainer()
    try container.encode(uriRepresentation)
  }
}

extension ManagedObjectID: CustomStringConvertible {
  /// The URI.
  public var description: String { uriRepresentation }
}

/// Percent-encoding of a URI path segment (RFC 3986).
///
/// Everything but unreserved characters is escaped. Unescaping returns exactly the text that was escaped.
enum URIText {
  static func escaped(_ text: String) -> String {
    var out: [UInt8] = []
    for byte in text.utf8 {
      if isUnreserved(byte) {
        out.append(byte)
      } else {
        out += [UInt8(ascii: "%"), hexDigit(byte >> 4), hexDigit(byte & 15)]
      }
    }
    return String(decoding: out, as: UTF8.self)
  }

  static func unescaped(_ text: Substring) -> String? {
    var out: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        out.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(hexValue), let low = rest.popFirst().flatMap(hexValue) else { return nil }
      out.append(high << 4 | low)
    }
    return String(validating: out, as: UTF8.self)
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 48...57, 65...90, 97...122, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
    default: false
    }
  }

  private static func hexDigit(_ value: UInt8) -> UInt8 { value < 10 ? 48 + value : 55 + value }

  private static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 48...57: byte - 48
    case 65...70: byte - 55
    case 97...102: byte - 87
    default: nil
    }
  }
}
