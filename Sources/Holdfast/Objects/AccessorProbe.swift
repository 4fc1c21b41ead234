import HoldfastStore
import Synchronization

/// The property that an accessor of a typed class uses.
enum PropertyAccess: Hashable {
  /// The slot of an attribute or a to-one relationship; for a composite attribute, each of its slots.
  case slot(SlotIndex)
  /// The index of a to-many relationship.
  case toMany(Int)
  /// The index of a transient attribute.
  case transient(Int)
  /// The index of a transient relationship.
  case transientLink(Int)
}

/// Records the properties that an object's accessors use, and those of the destinations of its to-one relationships.
///
/// Used by objects with the flag ``ObjectFlags/probe``.
final class AccessRecorder {
  /// The recorded accesses and the class of each object, in order.
  fileprivate(set) var steps: [(type: ManagedObject.Type, access: PropertyAccess)] = []
  /// The number of slots of the objects' rows.
  let slotLimit: Int
  /// The kind of value in every slot; nil for rows without values, which can be read as anything.
  let kind: CellKind?
  /// Whether to-one relationships have destinations, which record accesses too. Otherwise, they are nil.
  let hasDestinations: Bool

  init(slotLimit: Int, kind: CellKind? = nil, hasDestinations: Bool = false) {
    (self.slotLimit, self.kind, self.hasDestinations) = (slotLimit, kind, hasDestinations)
  }
}

extension ManagedObject {
  /// Whether the object only records accesses; if so, records this one.
  @inline(__always) final func isProbe(_ access: PropertyAccess) -> Bool {
    if !flags.contains(.probe) { return false }
    record(access)
    return true
  }

  @inline(never) private func record(_ access: PropertyAccess) {
    guard let recorder else { return }
    if case .slot(let slot) = access, slot < 0 || slot.rawValue >= recorder.slotLimit {
      fatalError(
        "\(type(of: self)) used slot \(slot). Slots are the numbers of an entity's attributes and to-one relationships, from 0 on.")
    }
    recorder.steps.append((type(of: self), access))
  }

  /// The recorder of a probe object.
  final var recorder: AccessRecorder? { owner.map { unsafeDowncast($0, to: AccessRecorder.self) } }

  /// The destination of a to-one relationship of a probe object.
  final func probeDestination<Destination: ManagedObject>() -> Destination? {
    guard let recorder, recorder.hasDestinations else { return nil }
    let object = Destination(ManagedObjectSeed(context: context, key: 0, flags: flags))
    object.row = row
    object.owner = recorder
    return object
  }
}

/// An object for testing the accessors of a class. It records accesses, has no values and ignores changes.
final class AccessorProbe {
  let object: ManagedObject

  /// Creates an object of a class in a separate context.
  ///
  /// - Parameter classes: The classes of all entities, by their indexes.
  init(_ type: ManagedObject.Type, entity: EntityIndex, _ classes: [ManagedObject.Type], _ coordinator: PersistentStoreCoordinator) {
    let context = ContextCore(
      coordinator: coordinator, bound: BoundClasses(withoutHooks: classes), isolation: .unchecked, recordsAccesses: true)
    let flags = ObjectFlags(entityIndex: entity).union([.probe, .detached])
    object = type.init(ManagedObjectSeed(context: context, key: 0, flags: flags))
    object.row = AbsentRow.pointer
  }

  /// The accesses of a body, in order. The body receives a closure that clears them.
  fileprivate func accesses(_ body: (ManagedObject, () -> Void) -> Void) -> [PropertyAccess] {
    let recorder = AccessRecorder(slotLimit: AbsentRow.slotCount)
    record(recorder) { object in body(object) { recorder.steps = [] } }
    return recorder.steps.map(\.access)
  }

  /// Runs a body that uses accessors.
  func record(_ recorder: AccessRecorder, _ body: (ManagedObject) -> Void) {
    object.owner = recorder
    defer { object.owner = nil }
    body(object)
  }
}

/// Compares the slots that the accessors of classes name with those that the classes list.
///
/// Every getter and setter of the listed properties is called once per process, on an object without values.
enum AccessorCheck {
  /// The classes whose accessors passed the check. There are few. The first set of a type would search all conformances in the process,
  /// which takes a tenth of a millisecond.
  private static let checked = Mutex<[ObjectIdentifier]>([])

  /// The differences of some classes, each with its entity.
  static func differences(
    _ classes: [(type: ManagedObject.Type, entity: EntityIndex)], _ model: ManagedObjectModel, _ transformers: AttributeTransformerRegistry
  ) -> [String] {
    var all: [ManagedObject.Type] = Array(repeating: ManagedObject.self, count: model.entities.count)
    for (type, entity) in classes { all[entity] = type }
    let unchecked = checked.withLock { checked in classes.filter { !checked.contains(ObjectIdentifier($0.type)) } }
    guard !unchecked.isEmpty, let coordinator = try? PersistentStoreCoordinator(model: model, transformers: transformers, stores: []) else {
      return []
    }
    return unchecked.flatMap { type, entity in
      let probe = AccessorProbe(type, entity: entity, all, coordinator)
      let found = type.properties.flatMap { differences($0, type, probe) }
      if found.isEmpty { checked.withLock { $0.append(ObjectIdentifier(type)) } }
      return found
    }
  }

  private static func differences(_ binding: PropertyBinding, _ type: ManagedObject.Type, _ probe: AccessorProbe) -> [String] {
    guard ClassBinding.isKind(type, of: binding.root) else { return ["\(type).\(binding.name): Its key path begins at \(binding.root)."] }
    let (right, noun) = binding.access
    func difference(_ accessor: String, _ accesses: [PropertyAccess]) -> String? {
      if accesses.isEmpty || accesses.contains(right) { return nil }
      let used = Set(accesses.map(\.number)).sorted().map(String.init).joined(separator: ", ")
      return "\(type).\(binding.name): Its \(accessor) uses \(noun) \(used), not \(right.number)."
    }
    let read = probe.accesses { object, _ in binding.read(object) }
    var written = probe.accesses(binding.write)
    // Setting by a key path may call the getter first.
    if written.starts(with: read) { written.removeFirst(read.count) }
    return [difference("getter", read), difference("setter", written)].compactMap { $0 }
  }
}

extension PropertyAccess {
  fileprivate var number: Int {
    switch self {
    case .slot(let slot): slot.rawValue
    case .toMany(let number), .transient(let number), .transientLink(let number): number
    }
  }
}

extension PropertyBinding {
  /// The property that its accessors should use, and the word for its number in messages.
  var access: (property: PropertyAccess, noun: String) {
    switch kind {
    case .transient: (.transient(slot), "index")
    case .relationship(let relationship) where relationship.isTransient: (.transientLink(slot), "index")
    case .relationship(let relationship) where relationship.isToMany: (.toMany(slot), "index")
    case .attribute, .relationship, .transformable, .composite: (.slot(SlotIndex(slot)), "slot")
    }
  }
}
