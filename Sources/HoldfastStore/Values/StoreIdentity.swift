import Synchronization

/// What this process knows about a store: its UUID, its entities, and its text identifiers.
///
/// A store creates its identity when it opens, and uses it to create object IDs. Identities are kept for the lifetime of the process.
///
/// ```swift
/// let identity = try StoreIdentity.intern(storedUUID: uuid, model: model)
/// let id = identity.objectID(entity: person, key: 7)
/// ```
public final class StoreIdentity: Sendable {
  /// The store's number, as in ``ManagedObjectID/storeNumber``.
  public let number: UInt32
  /// The store's UUID as upper-case text. Empty for the identity of objects that aren't in a store yet.
  public let storeUUID: String
  /// The keys of text identifiers, for a store whose records have them. Empty for other stores.
  public let references = ReferenceTable()
  private let names: Mutex<Names>

  /// The entity names by number. New names are added as they occur. Guarded by ``names``.
  private struct Names {
    var all: [String] = []
    var numbers: [String: UInt16] = [:]
    /// The root numbers of new IDs; see ``ManagedObjectID/rootNumber``.
    var roots: [UInt16] = []
    /// The root number of the family with this root entity; nil for an entity that no model has had as a root.
    var families: [UInt16?] = []
    /// Whether the keys are those of ``references``; nil until the store is opened.
    var usesReferences: Bool?

    mutating func number(_ name: String) -> UInt16 {
      if let known = numbers[name] { return known }
      let number = UInt16(truncatingIfNeeded: all.count)
      all.append(name)
      roots.append(ManagedObjectID.unknownRoots | number)
      families.append(nil)
      numbers[name] = number
      return number
    }

    mutating func setRoots(_ model: ManagedObjectModel) {
      let knownCount = all.count
      var members: [(entity: UInt16, root: UInt16)] = [], mixed: Set<UInt16> = []
      for entity in model.entities {
        let number = self.number(entity.name), root = self.number(model.entities[entity.rootIndex].name)
        members.append((number, root))
        // IDs of this entity with an unknown root can exist. A number from 2^14 on leaves no room for the mark.
        let isMixed = Int(number) < knownCount && roots[Int(number)] >= ManagedObjectID.mixedRoots
        if isMixed && root < ManagedObjectID.unknownRoots - ManagedObjectID.mixedRoots { mixed.insert(root) }
      }
      for (entity, root) in members {
        // It never changes, because IDs contain it.
        let family = families[Int(root)] ?? (mixed.contains(root) ? ManagedObjectID.mixedRoots | root : root)
        families[Int(root)] = family
        roots[Int(entity)] = family
      }
    }
  }

  private init(number: UInt32, storeUUID: String, usesReferences: Bool?) {
    self.number = number
    self.storeUUID = storeUUID
    var initial = Names()
    initial.usesReferences = usesReferences
    names = Mutex(initial)
  }

  /// Returns the identity of a store whose UUID is in its data, with the model's entities. Creates it if necessary.
  ///
  /// - Parameters:
  ///   - storedUUID: The UUID that was read.
  ///   - model: The model whose entities get numbers.
  ///   - usesReferences: Whether the store's records have text identifiers, whose keys are in ``references``. Defaults to false.
  ///   - path: The store's location, for the error. Defaults to nil.
  /// - Throws: ``StoreError`` with code `alreadyOpen` if this process has opened a store with the same UUID and another value of
  ///   `usesReferences`: the keys of its IDs have another meaning.
  public static func intern(
    storedUUID: String, model: ManagedObjectModel, usesReferences: Bool = false, path: String? = nil
  ) throws(StoreError) -> StoreIdentity {
    let identity = known(uuid: storedUUID)
    if identity.adopt(model, usesReferences) { return identity }
    throw StoreError(
      .alreadyOpen, operation: "open the store", path: path,
      reason: "This process has opened another store with the same UUID, \(identity.contradiction(usesReferences)). "
        + "One of them is a copy or was changed. Open it in another process.")
  }

  /// Returns the identity of a store whose UUID the caller has made, with the model's entities. Creates it if necessary.
  ///
  /// - Parameters:
  ///   - storeUUID: The store's UUID. For one that was read from data, call ``intern(storedUUID:model:usesReferences:path:)``.
  ///   - model: The model whose entities get numbers.
  ///   - usesReferences: Whether the store's records have text identifiers, whose keys are in ``references``. Always the same for a store:
  ///     another value would give the keys another meaning, and traps. Defaults to false.
  public static func intern(storeUUID: String, model: ManagedObjectModel, usesReferences: Bool = false) -> StoreIdentity {
    let identity = known(uuid: storeUUID)
    let isSame = identity.adopt(model, usesReferences)
    precondition(isSame, "This process has opened the store \(storeUUID) before, \(identity.contradiction(usesReferences)).")
    return identity
  }

  /// Gives the model's entities numbers. Returns false, and changes nothing, if the store was opened with the other kind of identifiers.
  private func adopt(_ model: ManagedObjectModel, _ usesReferences: Bool) -> Bool {
    names.withLock { names in
      if let former = names.usesReferences, former != usesReferences { return false }
      names.usesReferences = usesReferences
      names.setRoots(model)
      return true
    }
  }

  /// Gives the entities of a model their root entities again, after the store was also opened with another version of the model.
  ///
  /// New IDs have the roots of the model that was used last, and those that were created with different roots aren't equal.
  package func restoreRoots(of model: ManagedObjectModel) { names.withLock { $0.setRoots(model) } }

  private func contradiction(_ usesReferences: Bool) -> String {
    usesReferences ? "whose records have numbers, not text identifiers" : "whose records have text identifiers, not numbers"
  }

  /// Returns the ID of the object with this key.
  public func objectID(entity: ManagedObjectModel.Entity, key: ObjectKey) -> ManagedObjectID {
    objectID(entityName: entity.name, key: key)
  }

  /// Returns an entity's ID with key 0, a prefix for creating many IDs.
  ///
  /// Get other IDs with ``ManagedObjectID/withKey(_:)``.
  public func prefix(for entity: ManagedObjectModel.Entity) -> ManagedObjectID { objectID(entityName: entity.name, key: 0) }

  func objectID(entityName: String, key: ObjectKey) -> ManagedObjectID {
    let (root, entity) = names.withLock { names in
      let entity = names.number(entityName)
      return (names.roots[Int(entity)], entity)
    }
    return ManagedObjectID(storeNumber: number, rootNumber: root, entityNumber: entity, key: key)
  }

  /// The ID of an object whose entity comes from a URI. Nil if the name is new and the store has the maximum number of entity names, or all
  /// names in URIs take too much memory.
  ///
  /// - Parameter isStored: Whether the URI is a store's data, whose names aren't counted.
  func objectID(mentionedEntity name: String, key: ObjectKey, isStored: Bool) -> ManagedObjectID? {
    let (isKnown, isFull) = names.withLock { ($0.numbers[name] != nil, $0.all.count >= 16_384) }
    guard isKnown || !isFull && (isStored || StoreIdentity.known.withLock { $0.admits(name) }) else { return nil }
    return objectID(entityName: name, key: key)
  }

  /// The numbers of the entities with this root number.
  fileprivate func entityNumbers(_ root: UInt16) -> [UInt16] {
    names.withLock { names in names.roots.indices.filter { names.roots[$0] == root }.map { UInt16(truncatingIfNeeded: $0) } }
  }

  func entityName(_ number: UInt16) -> String {
    names.withLock { Int(number) < $0.all.count ? $0.all[Int(number)] : "" }
  }

  /// The root number of new IDs of an entity; nil for an unknown entity.
  func rootNumber(_ entity: UInt16) -> UInt16? {
    names.withLock { Int(entity) < $0.roots.count ? $0.roots[Int(entity)] : nil }
  }

  func referenceText(for key: ObjectKey) -> String {
    (names.withLock { $0.usesReferences ?? false } ? references.reference(for: key) : nil) ?? "\(key)"
  }

  /// The key of a text in a URI. A store with text identifiers has a key for each text, even if it hasn't read the record yet,
  /// unless URIs have named too many such texts.
  ///
  /// Before the store is opened, only the numbers have keys that are the same with text identifiers as without.
  ///
  /// - Parameter isStored: Whether the URI is a store's data, whose texts aren't counted.
  func key(forReference text: String, isStored: Bool) -> ObjectKey? {
    switch names.withLock({ $0.usesReferences }) {
    case true?: isStored ? references.key(for: text) : references.key(forMentioned: text)
    case false?: Int64(text).flatMap { "\($0)" == text ? ObjectKey($0) : nil }
    case nil: ReferenceTable.number(text)
    }
  }

  // MARK: The process-wide list

  private struct Known {
    var all: [StoreIdentity] = []
    var byUUID: [String: StoreIdentity] = [:]
    /// The identities of stored IDs that have no key in their store.
    var unopened: [String: StoreIdentity] = [:]
    /// The memory for stores and entities that only URIs have named. It is never released, so it is limited.
    private var mentionedByteCount = 0

    /// Counts a new store or entity in a URI. Returns false if there are too many.
    mutating func admits(_ name: String) -> Bool {
      let byteCount = mentionedByteCount + 256 + name.utf8.count
      guard byteCount <= 64 << 20 else { return false }
      mentionedByteCount = byteCount
      return true
    }

    mutating func add(_ storeUUID: String, usesReferences: Bool? = nil) -> StoreIdentity {
      let number = UInt32(truncatingIfNeeded: all.count)
      let identity = StoreIdentity(number: number, storeUUID: storeUUID, usesReferences: usesReferences)
      all.append(identity)
      return identity
    }
  }

  private static let known = Mutex(Known())

  static func known(_ number: UInt32) -> StoreIdentity {
    known.withLock { Int(number) < $0.all.count ? $0.all[Int(number)] : nil } ?? known(uuid: "")
  }

  static func known(uuid: String) -> StoreIdentity {
    known.withLock { known in
      if let identity = known.byUUID[uuid] { return identity }
      let identity = known.add(uuid)
      known.byUUID[uuid] = identity
      return identity
    }
  }

  /// The identity of a store in a URI; nil if it is new and too many others were named.
  static func mentioned(uuid: String) -> StoreIdentity? {
    known.withLock { known in
      if let identity = known.byUUID[uuid] { return identity }
      guard known.admits(uuid) else { return nil }
      let identity = known.add(uuid)
      known.byUUID[uuid] = identity
      return identity
    }
  }

  /// The identity of stored IDs that name a store which this process hasn't opened with such identifiers. It isn't that of the store.
  static func unopened(uuid: String) -> StoreIdentity {
    known.withLock { known in
      if let identity = known.unopened[uuid] { return identity }
      let identity = known.add(uuid, usesReferences: true)
      known.unopened[uuid] = identity
      return identity
    }
  }
}

extension ManagedObjectID {
  /// Returns an ID with the same store and entity, and another key.
  @inlinable public func withKey(_ key: ObjectKey) -> ManagedObjectID {
    ManagedObjectID(storeNumber: storeNumber, rootNumber: rootNumber, entityNumber: entityNumber, key: key)
  }

  /// The IDs that are equal to this one: one with the name of each entity that has the same root entity. Their URIs differ.
  package var equalIDs: [ManagedObjectID] {
    if isTemporaryID { return [self] }
    // This ID may have been created when the root was unknown.
    guard let root = identity.rootNumber(entityNumber) else { return [self] }
    let numbers = identity.entityNumbers(root)
    if numbers.count < 2 { return [self] }
    return numbers.map { ManagedObjectID(storeNumber: storeNumber, rootNumber: root, entityNumber: $0, key: key) }
  }
}
