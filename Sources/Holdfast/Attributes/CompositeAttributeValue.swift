public import HoldfastStore

/// A Swift struct that stands for a composite attribute: a value with the elements of a
/// ``/HoldfastStore/CompositeDescription``.
///
/// ```swift
/// struct Place: CompositeAttributeValue {
///   var city: String?
///   var latitude = 0.0
///   var longitude = 0.0
///   static let elements: CompositeElements<Place> = [
///     .attribute("city", \.city), .attribute("latitude", \.latitude), .attribute("longitude", \.longitude),
///   ]
/// }
/// ```
///
/// Names, types and number of the elements are compared with the model when a class with such a property is bound.
public protocol CompositeAttributeValue: Sendable {
  /// Makes a value whose elements have their defaults; they are overwritten when one is read.
  init()
  /// Every element of the group, in any order. A stored constant, since it is asked for at each access.
  static var elements: CompositeElements<Self> { get }
}

/// The elements of a struct that stands for a composite attribute. Made of an array literal.
public struct CompositeElements<Root>: Sendable, ExpressibleByArrayLiteral {
  /// In the order of their names, in which their values lie side by side in a row.
  @usableFromInline let elements: [CompositeElement<Root>]
  /// How many slots they have, with those of groups within the group.
  @usableFromInline let slotCount: Int
  /// The types that the Swift type of each slot's element can hold.
  @usableFromInline let slotTypes: [AttributeTypeSet]

  /// Takes the elements, in any order.
  public init(arrayLiteral elements: CompositeElement<Root>...) {
    var (sorted, slot) = (elements.sorted { Array($0.name.utf8).lexicographicallyPrecedes(Array($1.name.utf8)) }, 0)
    for place in sorted.indices {
      sorted[place].offset = slot
      slot += sorted[place].slotCount
    }
    self.elements = sorted
    slotCount = slot
    slotTypes = sorted.flatMap { element in element.leaves().map(\.types) }
  }

  /// The values that stores keep: their names below the group's, and which types of attributes the Swift type can hold.
  var leaves: [(name: String, types: AttributeTypeSet)] { elements.flatMap { $0.leaves() } }

  /// The name of the element that a key path reads.
  ///
  /// One that is not listed is a mistake of the program and traps.
  func name(_ keyPath: PartialKeyPath<Root>) -> String {
    guard let element = elements.first(where: { $0.keyPath == keyPath }) else {
      preconditionFailure("\(Root.self) lists no element with the key path \(keyPath); add it to `elements`.")
    }
    return element.name
  }
}

extension CompositeElements where Root: CompositeAttributeValue {
  /// Reads a group from a row; nil when none of its elements has a value.
  @inlinable func load(_ row: RowPointer, _ slot: Int) -> Root? {
    guard (slot..<slot + slotCount).contains(where: { row.isPresent($0) }) else { return nil }
    var root = Root()
    for element in elements { element.load(&root, row, slot + element.offset) }
    return root
  }

  /// Writes a group into an object, nil as nothing in all of its elements.
  @inlinable func store(_ root: Root?, in object: ManagedObject, _ slot: Int) {
    guard let root else {
      for slot in slot..<slot + slotCount { object.setNull(slot) }
      return
    }
    for element in elements { element.store(root, object, slot + element.offset) }
  }
}

/// One element of a struct that stands for a composite attribute.
public struct CompositeElement<Root>: Sendable {
  /// The name in the model.
  public let name: String
  @usableFromInline let slotCount: Int
  /// Where its values begin among those of the group.
  @usableFromInline var offset = 0
  @usableFromInline let keyPath: any PartialKeyPath<Root> & Sendable
  @usableFromInline let leaves: @Sendable () -> [(name: String, types: AttributeTypeSet)]
  @usableFromInline let load: @Sendable (inout Root, RowPointer, Int) -> Void
  @usableFromInline let store: @Sendable (Root, ManagedObject, Int) -> Void

  @usableFromInline init(
    name: String, slotCount: Int, keyPath: any PartialKeyPath<Root> & Sendable,
    leaves: @escaping @Sendable () -> [(name: String, types: AttributeTypeSet)],
    load: @escaping @Sendable (inout Root, RowPointer, Int) -> Void, store: @escaping @Sendable (Root, ManagedObject, Int) -> Void
  ) {
    (self.name, self.slotCount, self.keyPath) = (name, slotCount, keyPath)
    (self.leaves, self.load, self.store) = (leaves, load, store)
  }

  /// An element that is a value.
  @inlinable public static func attribute<Value: AttributeValue & SendableMetatype>(
    _ name: String, _ keyPath: any WritableKeyPath<Root, Value> & Sendable
  ) -> CompositeElement {
    let access = StoredPart(keyPath)
    return CompositeElement(
      name: name, slotCount: 1, keyPath: keyPath, leaves: { [(name, Value.attributeTypes)] },
      load: { access.set(Value.load($1, $2), in: &$0) }, store: { access.get($0).store(in: $1, $2) })
  }

  /// An element that is a group itself.
  @inlinable public static func composite<Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: any WritableKeyPath<Root, Value?> & Sendable
  ) -> CompositeElement {
    let access = StoredPart(keyPath)
    return CompositeElement(
      name: name, slotCount: Value.elements.slotCount, keyPath: keyPath,
      leaves: { Value.elements.leavesBelow(name) }, load: { access.set(Value.elements.load($1, $2), in: &$0) },
      store: { Value.elements.store(access.get($0), in: $1, $2) })
  }

  /// An element that is a group itself and always there; without values its elements have their defaults.
  @inlinable public static func composite<Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: any WritableKeyPath<Root, Value> & Sendable
  ) -> CompositeElement {
    let access = StoredPart(keyPath)
    return CompositeElement(
      name: name, slotCount: Value.elements.slotCount, keyPath: keyPath,
      leaves: { Value.elements.leavesBelow(name) }, load: { access.set(Value.elements.load($1, $2) ?? Value(), in: &$0) },
      store: { Value.elements.store(access.get($0), in: $1, $2) })
  }
}

extension CompositeElements {
  @usableFromInline func leavesBelow(_ name: String) -> [(name: String, types: AttributeTypeSet)] {
    leaves.map { ("\(name).\($0.name)", $0.types) }
  }
}

/// A part of a struct, reached where it lies: following a key path takes ten times as long.
@usableFromInline struct StoredPart<Root, Value>: Sendable {
  @usableFromInline let keyPath: any WritableKeyPath<Root, Value> & Sendable
  /// Nil for what is no stored property.
  @usableFromInline let offset: Int?

  @inlinable init(_ keyPath: any WritableKeyPath<Root, Value> & Sendable) {
    self.keyPath = keyPath
    offset = MemoryLayout<Root>.offset(of: keyPath)
  }

  @inlinable @inline(__always) func get(_ root: Root) -> Value {
    guard let offset else { return root[keyPath: keyPath] }
    return withUnsafePointer(to: root) { (UnsafeRawPointer($0) + offset).assumingMemoryBound(to: Value.self).pointee }
  }

  @inlinable @inline(__always) func set(_ value: Value, in root: inout Root) {
    guard let offset else {
      root[keyPath: keyPath] = value
      return
    }
    withUnsafeMutablePointer(to: &root) { (UnsafeMutableRawPointer($0) + offset).assumingMemoryBound(to: Value.self).pointee = value }
  }
}
