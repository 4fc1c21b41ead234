import HoldfastStore

extension ManagedObjectSnapshot {
  /// Applies the changes of an edited snapshot to its object, which may have changed since the snapshot was made.
  ///
  /// ```swift
  /// var draft = try ManagedObjectSnapshot(book)  // sent to an editor, for example
  /// draft.title = "Emma. A Novel"
  /// try draft.apply(to: book, mergingBy: .mergeByPropertyObjectTrump)
  /// ```
  ///
  /// The three states are: the values when the snapshot was made, the values of the snapshot, and those of the object now. The policy's
  /// *object* is the snapshot, and its *store* is the object.
  ///
  /// | policy | what is set |
  /// |---|---|
  /// | ``MergePolicy/error`` | the properties that were changed in the snapshot. If one was changed in the object as well, to another value: nothing |
  /// | ``MergePolicy/mergeByPropertyObjectTrump`` | the properties that were changed in the snapshot |
  /// | ``MergePolicy/mergeByPropertyStoreTrump`` | the same, except for those that were changed in the object as well |
  /// | ``MergePolicy/overwrite`` | all properties |
  /// | ``MergePolicy/rollback`` | the properties that were changed in the snapshot. If any property was changed in the object: nothing |
  ///
  /// A custom policy is asked if any property was changed in the object. Without changes of the object, every policy sets what was changed in
  /// the snapshot. A snapshot that was decoded doesn't know its former values: all its values count as changed, and those of the object that
  /// differ from them, too.
  ///
  /// Sends the requests of ``init(_:)`` and ``apply(to:)``.
  ///
  /// - Throws: ``PersistenceError`` with code ``PersistenceError/Code/conflict`` if the policy is, returns or throws an error; the errors
  ///   of ``init(_:)`` and ``apply(to:)``.
  public func apply(to object: Object, mergingBy policy: MergePolicy) throws {
    let merge = try SnapshotMerge(self, object)
    if !merge.isChangedElsewhere { return try merge.set { merge.isChanged($0) } }
    switch try merge.resolution(policy) {
    case .error: throw merge.conflict()
    case .mergeByPropertyObjectTrump: try merge.set { merge.isChanged($0) }
    case .mergeByPropertyStoreTrump: try merge.set { merge.isChanged($0) && !merge.isChangedElsewhere($0) }
    case .overwrite: try merge.set { _ in true }
    case .rollback: break
    case .values(let values):
      // Nothing is set if a value can't be.
      for (name, value) in values { try object.checkSettable(value, forKey: name) }
      try merge.set { merge.isChanged($0) }
      try object.setPolicyValues(values)
    }
  }
}

/// The three states of a snapshot and its object.
private struct SnapshotMerge<Object: ManagedObject> {
  private let object: Object
  private let names: [String]
  /// The values by field; nil for those that aren't set or can't be set.
  private let base: [StoreValue?]
  private let ours: [StoreValue?]
  private let theirs: [StoreValue?]

  init(_ snapshot: ManagedObjectSnapshot<Object>, _ object: Object) throws {
    self.object = object
    let now = try ManagedObjectSnapshot(object), fields = SnapshotLayout.of(Object.self).fields
    names = fields.map(\.name)
    ours = zip(fields, snapshot.values).map { field, value in
      if case .attribute(let attribute)? = object.entity.property(named: field.name), attribute.derivation != nil { return nil }
      return value.map { object.context.present($0) }
    }
    theirs = now.values
    base = snapshot.base?.map { $0.map { object.context.present($0) } } ?? Array(repeating: nil, count: fields.count)
  }

  /// Whether a field was changed in the snapshot.
  func isChanged(_ place: Int) -> Bool { ours[place] != nil && SnapshotMerge.differ(ours[place], base[place]) }

  /// Whether a field was changed in the object, to another value than that of the snapshot.
  func isChangedElsewhere(_ place: Int) -> Bool {
    guard let own = ours[place] else { return false }
    return SnapshotMerge.differ(theirs[place], base[place]) && (base[place] != nil || SnapshotMerge.differ(theirs[place], own))
  }

  /// Whether two values differ, as rows compare them: by their bytes.
  ///
  /// For `==`, NaN differs from itself, and texts are equal that differ in their normalization.
  private static func differ(_ first: StoreValue?, _ second: StoreValue?) -> Bool {
    switch (first, second) {
    case (.string(let a)?, .string(let b)?), (.uri(let a)?, .uri(let b)?): return !a.utf8.elementsEqual(b.utf8)
    case (.float(let a)?, .float(let b)?): return a != b && a.bitPattern != b.bitPattern
    case (.double(let a)?, .double(let b)?), (.date(let a)?, .date(let b)?): return a != b && a.bitPattern != b.bitPattern
    case (let a?, let b?): return a != b && !(a.isNaN && b.isNaN)
    default: return first != second
    }
  }

  var isChangedElsewhere: Bool { names.indices.contains { isChangedElsewhere($0) } }

  func set(_ isIncluded: (Int) -> Bool) throws {
    for place in names.indices where isIncluded(place) && SnapshotMerge.differ(ours[place], theirs[place]) {
      if let value = ours[place] { try object.setSnapshotValue(value, forKeyPath: names[place]) }
    }
  }

  func resolution(_ policy: MergePolicy) throws -> MergeResolution {
    switch policy.rule {
    case .always(.error):
      let overlaps = names.indices.contains {
        isChanged($0) && isChangedElsewhere($0) && SnapshotMerge.differ(ours[$0], theirs[$0])
      }
      return overlaps ? .error : .mergeByPropertyObjectTrump
    case .always(let resolution): return resolution
    case .custom(let resolve):
      let conflict = MergeConflict(
        objectID: object.objectID, entityName: object.entity.name, kind: .update, base: values(base), ours: values(ours),
        theirs: values(theirs), existingObjectID: nil)
      do { return try resolve(conflict) } catch { throw self.conflict(cause: error) }
    }
  }

  private func values(_ states: [StoreValue?]) -> [String: StoreValue] {
    let named = zip(names, states).compactMap { name, value in value.map { (name, stored($0, name)) } }
    return Dictionary(named, uniquingKeysWith: { first, _ in first })
  }

  /// The value in the type of the model.
  private func stored(_ value: StoreValue, _ name: String) -> StoreValue {
    guard case .attribute(let attribute)? = object.entity.property(named: name) else { return value }
    return value.ofProperty(in: attribute.type) ?? value
  }

  func conflict(cause: (any Error)? = nil) -> PersistenceError {
    PersistenceError(
      .conflict, objectID: object.objectID,
      reason: "The object was changed since the snapshot was made, and the merge policy doesn't resolve that. Nothing was set.",
      objectIDs: [object.objectID], cause: cause)
  }
}
