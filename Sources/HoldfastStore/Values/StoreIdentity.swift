import Synchronization

/// What a process knows about one store, by a small number: its UUID, its entities, and how keys and reference texts
/// belong together. Lives as long as the process.
///
/// A store makes its identity while it opens and uses it to make object IDs:
///
/// ```swift
/// let identity = StoreIdentity.intern(storeUUID: uuid, model: model)
/// let id = identity.objectID(entity: person, key: 7)
/// ```
public final class StoreIdentity: Sendable {
  /// The number in ``ManagedObjectID/storeNumber``.
  public let number: UInt32
  /// The store's UUID as upper-case text; empty for the identity of objects that belong to no store yet.
  public let storeUUID: String
  private let names: Mutex<Names>

  /// The entity names by number, which grow as names become known; guarded by ``names``.
  private struct Names {
    var all: [String] = []
    var numbers: [String: UInt16] = [:]
    var roots: [UInt16] = []
    /// The numbers of the model's entities by their index in the model.
    var byIndex: [UInt16] = []
    var references: ReferenceTable?

    mutating func number(_ name: String) -> UInt16 {
      if let known = numbers[name] { return known }
      let number = UInt16(truncatingIfNeeded: all.count)
      all.append(name)
      roots.append(number)
      numbers[name] = number
      return number
    }
  }

  private init(number: UInt32, storeUUID: String) {
    self.number = number
    self.storeUUID = storeUUID
    names = Mutex(Names())
  }

  /// The identity of the store with that UUID, made when the process does not have it yet, with the model's entities.
  ///
  /// - Parameters:
  ///   - storeUUID: the store's UUID.
  ///   - model: the model whose entities get numbers.
  ///   - references: the table of a store whose keys stand for texts.
  public static func intern(storeUUID: String, model: ManagedObjectModel, references: ReferenceTable? = nil) -> StoreIdentity {
    let identity = known(uuid: storeUUID)
    identity.names.withLock { names in
      names.byIndex = model.entities.map { names.number($0.name) }
      for entity in model.entities {
        names.roots[Int(names.number(entity.name))] = names.number(model.entities[entity.rootIndex].name)
      }
      if let references { names.references = references }
    }
    return identity
  }

  /// An ID of the object with that key.
  public func objectID(entity: ManagedObjectModel.Entity, key: Int64) -> ManagedObjectID {
    objectID(entityName: entity.name, key: key)
  }

  /// The ID of an entity's objects with key 0, from which others are made by ``ManagedObjectID/withKey(_:)``: for
  /// loops that make many.
  public func prefix(for entity: ManagedObjectModel.Entity) -> ManagedObjectID { objectID(entityName: entity.name, key: 0) }

  func objectID(entityName: String, key: Int64) -> ManagedObjectID {
    let (root, entity) = names.withLock { names in
      let entity = names.number(entityName)
      return (names.roots[Int(entity)], entity)
    }
    return ManagedObjectID(storeNumber: number, rootNumber: root, entityNumber: entity, key: key)
  }

  /// The ID of an object of an entity that a URI mentions; nil when the store is said to have more entities than any has.
  func objectID(mentionedEntity name: String, key: Int64) -> ManagedObjectID? {
    let isKnownOrNew = names.withLock { $0.numbers[name] != nil || $0.all.count < 16_384 }
    return isKnownOrNew ? objectID(entityName: name, key: key) : nil
  }

  /// The ID of an object of the model's entity with that index.
  public func objectID(entityIndex: Int, key: Int64) -> ManagedObjectID {
    let (root, entity) = names.withLock { names in
      let entity = entityIndex < names.byIndex.count ? names.byIndex[entityIndex] : 0
      return (Int(entity) < names.roots.count ? names.roots[Int(entity)] : 0, entity)
    }
    return ManagedObjectID(storeNumber: number, rootNumber: root, entityNumber: entity, key: key)
  }

  static func targetID(of source: ManagedObjectID, destination: Int, key: Int64) -> ManagedObjectID {
    known(source.storeNumber).objectID(entityIndex: destination, key: key)
  }

  func entityName(_ number: UInt16) -> String {
    names.withLock { Int(number) < $0.all.count ? $0.all[Int(number)] : "" }
  }

  func referenceText(for key: Int64) -> String {
    names.withLock { $0.references }?.reference(for: key) ?? String(key)
  }

  func key(forReference text: String) -> Int64? {
    guard let references = names.withLock({ $0.references }) else { return Int64(text) }
    return references.existingKey(for: text)
  }

  // MARK: The process-wide list

  private struct Known {
    var all: [StoreIdentity] = []
    var byUUID: [String: StoreIdentity] = [:]
  }

  private static let known = Mutex(Known())

  static func known(_ number: UInt32) -> StoreIdentity {
    known.withLock { Int(number) < $0.all.count ? $0.all[Int(number)] : nil } ?? known(uuid: "")
  }

  static func known(uuid: String) -> StoreIdentity {
    known.withLock { known in
      if let identity = known.byUUID[uuid] { return identity }
      let identity = StoreIdentity(number: UInt32(truncatingIfNeeded: known.all.count), storeUUID: uuid)
      known.all.append(identity)
      known.byUUID[uuid] = identity
      return identity
    }
  }
}

extension ManagedObjectID {
  /// The same store and entity with another key.
  @inlinable public func withKey(_ key: Int64) -> ManagedObjectID {
    ManagedObjectID(storeNumber: storeNumber, rootNumber: rootNumber, entityNumber: entityNumber, key: key)
  }
}
