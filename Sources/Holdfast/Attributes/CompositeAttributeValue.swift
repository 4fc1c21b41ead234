public import HoldfastStore

/// A Swift struct that represents a composite attribute.
///
/// It has the elements of a ``/HoldfastStore/CompositeDescription``:
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
/// A class that declares its entity also declares the elements. They are optional, and options add rules and settings:
/// `.attribute("city", \.city, .length(1...40))`.
///
/// Binding a class with such a property compares the names, types and number of the elements with the model.
public protocol CompositeAttributeValue: FetchPathMembers, Sendable {
  /// Creates a value with default elements. Reading the attribute then overwrites them.
  init()
  /// Every element of the composite, in any order. Use a stored constant: each access of the attribute reads it.
  static var elements: CompositeElements<Self> { get }
  /// The number of slots: one for each element, and those of composite elements. Defaults to counting ``elements``.
  ///
  /// A class with a declaration adds it to the slots of further properties. If it is a constant, those are constants too.
  static var slotCount: Int { get }
}

extension CompositeAttributeValue {
  /// The number of slots of ``elements``.
  @inlinable public static var slotCount: Int { elements.slotCount }
}

/// The elements of a struct that represents a composite attribute, written as an array literal.
public struct CompositeElements<Root>: Sendable, ExpressibleByArrayLiteral {
  /// The elements sorted by name, which is the order of their slots in a row.
  @usableFromInline let elements: [CompositeElement<Root>]
  /// The number of slots, including those of nested composite attributes.
  @usableFromInline let slotCount: Int
  /// The attribute types that each slot's Swift type can hold.
  @usableFromInline let slotTypes: [AttributeTypeSet]

  /// Creates a list of elements, in any order.
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

  /// The single values, by path below the composite attribute, with the attribute types that their Swift types can hold.
  var leaves: [(name: String, types: AttributeTypeSet)] { elements.flatMap { $0.leaves() } }

  /// The name of the element at a key path. Traps when the element isn't listed.
  func name(_ keyPath: AnyKeyPath) -> String {
    guard let element = elements.first(where: { $0.keyPath == keyPath }) else {
      preconditionFailure("\(Root.self) has no element with the key path \(keyPath). Add it to `elements`.")
    }
    return element.name
  }
}

extension CompositeElements where Root: CompositeAttributeValue {
  /// Reads a composite attribute from a row; nil when no element has a value.
  @inlinable func load(_ row: RowPointer, _ slot: SlotIndex) -> Root? {
    guard (slot..<slot.advanced(by: slotCount)).contains(where: { row.isPresent($0) }) else { return nil }
    var root = Root()
    for element in elements { element.load(&root, row, slot.advanced(by: element.offset)) }
    return root
  }

  /// Writes a composite attribute into an object. Nil clears all elements.
  @inlinable func store(_ root: Root?, in object: ManagedObject, _ slot: SlotIndex) {
    guard let root else {
      for slot in slot..<slot.advanced(by: slotCount) { object.setNull(slot) }
      return
    }
    for element in elements { element.store(root, object, slot.advanced(by: element.offset)) }
  }
}

extension CompositeElements where Root: CompositeAttributeValue {
  /// The values of the slots; nulls for nil.
  @usableFromInline func storeValues(_ root: Root?) -> [StoreValue] { elements.flatMap { $0.storeValues(root) } }

  /// The composite attribute with the given values in its slots; nil if all are null. Builds a temporary row.
  func value(of values: [StoreValue]) -> Root? {
    let types = slotTypes.map(\.declaredType)
    let builder = RowBatchBuilder(layout: RowLayout(types.map { ColumnType.attribute($0) }), idPrefix: nil)
    builder.beginRow(key: 0, version: 0)
    for (value, type) in zip(values, types) {
      guard builder.append(ofObject: value.ofObject(in: type) ?? .null, in: type) else { return nil }
    }
    builder.endRow()
    let row = builder.seal()
    return withExtendedLifetime(row) { load(row.pointer(0), 0) }
  }
}

/// An element of a struct that represents a composite attribute.
public struct CompositeElement<Root>: Sendable {
  /// The name in the model.
  public let name: String
  @usableFromInline let slotCount: Int
  /// The index of its first slot within the composite attribute.
  @usableFromInline var offset = 0
  @usableFromInline let keyPath: any PartialKeyPath<Root> & Sendable
  /// The single values, and the rules and settings of its description. In a closure, because each access of an attribute copies its elements.
  @usableFromInline let contents: @Sendable () -> Contents
  @usableFromInline let load: @Sendable (inout Root, RowPointer, SlotIndex) -> Void
  @usableFromInline let store: @Sendable (Root, ManagedObject, SlotIndex) -> Void
  /// The values of the slots; nulls for an absent composite attribute.
  @usableFromInline let storeValues: @Sendable (Root?) -> [StoreValue]

  /// What a model has of an element.
  @usableFromInline typealias Contents = (leaves: [(name: String, types: AttributeTypeSet)], options: [AttributeOption])

  /// The single values, by path, with the attribute types that their Swift types can hold.
  func leaves() -> [(name: String, types: AttributeTypeSet)] { contents().leaves }

  @usableFromInline init(
    name: String, slotCount: Int, keyPath: any PartialKeyPath<Root> & Sendable, contents: @escaping @Sendable () -> Contents,
    load: @escaping @Sendable (inout Root, RowPointer, SlotIndex) -> Void,
    store: @escaping @Sendable (Root, ManagedObject, SlotIndex) -> Void, storeValues: @escaping @Sendable (Root?) -> [StoreValue]
  ) {
    (self.name, self.slotCount, self.keyPath) = (name, slotCount, keyPath)
    (self.contents, self.load, self.store, self.storeValues) = (contents, load, store, storeValues)
  }

  /// An element with a single value.
  ///
  /// The options are for classes that declare their entities, such as `.length(1...40)`. An element can't be unique by itself.
  @inlinable public static func attribute<Value: AttributeValue>(
    _ name: String, _ keyPath: any WritableKeyPath<Root, Value> & Sendable, _ options: AttributeOption...
  ) -> CompositeElement { single(name, keyPath, options) }

  /// An element that is an optional composite attribute.
  @inlinable public static func composite<Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: any WritableKeyPath<Root, Value?> & Sendable, _ options: AttributeOption...
  ) -> CompositeElement { nested(name, keyPath, options) }

  /// An element that is a composite attribute. If none of its own elements has a value, it reads as `Value()`.
  @inlinable public static func composite<Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: any WritableKeyPath<Root, Value> & Sendable, _ options: AttributeOption...
  ) -> CompositeElement { nested(name, keyPath, options) }

  @inlinable static func single<Value: AttributeValue>(
    _ name: String, _ keyPath: any WritableKeyPath<Root, Value> & Sendable, _ options: [AttributeOption]
  ) -> CompositeElement {
    let access = StoredPart(keyPath)
    return CompositeElement(
      name: name, slotCount: 1, keyPath: keyPath, contents: { ([(name, Value.attributeTypes)], options) },
      load: { access.set(Value.load($1, $2), in: &$0) }, store: { access.get($0).store(in: $1, $2) },
      storeValues: { [$0.map { access.get($0).storeValue } ?? .null] })
  }

  @inlinable static func nested<Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: any WritableKeyPath<Root, Value?> & Sendable, _ options: [AttributeOption]
  ) -> CompositeElement {
    let access = StoredPart(keyPath)
    return CompositeElement(
      name: name, slotCount: Value.elements.slotCount, keyPath: keyPath, contents: { (Value.elements.leavesBelow(name), options) },
      load: { access.set(Value.elements.load($1, $2), in: &$0) },
      store: { Value.elements.store(access.get($0), in: $1, $2) },
      storeValues: { Value.elements.storeValues($0.flatMap { access.get($0) }) })
  }

  @inlinable static func nested<Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: any WritableKeyPath<Root, Value> & Sendable, _ options: [AttributeOption]
  ) -> CompositeElement {
    let access = StoredPart(keyPath)
    return CompositeElement(
      name: name, slotCount: Value.elements.slotCount, keyPath: keyPath, contents: { (Value.elements.leavesBelow(name), options) },
      load: { access.set(Value.elements.load($1, $2) ?? Value(), in: &$0) },
      store: { Value.elements.store(access.get($0), in: $1, $2) },
      storeValues: { Value.elements.storeValues($0.map { access.get($0) }) })
  }
}

/// One name for all kinds of elements, for generated code: the type of the key path decides.
extension CompositeElement {
  /// An element with a single value.
  @inlinable public static func element<Value: AttributeValue>(
    _ name: String, _ keyPath: any WritableKeyPath<Root, Value> & Sendable, _ options: AttributeOption...
  ) -> CompositeElement { single(name, keyPath, options) }

  /// An element that is an optional composite attribute.
  @inlinable public static func element<Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: any WritableKeyPath<Root, Value?> & Sendable, _ options: AttributeOption...
  ) -> CompositeElement { nested(name, keyPath, options) }

  /// An element that is a composite attribute. If none of its own elements has a value, it reads as `Value()`.
  @inlinable public static func element<Value: CompositeAttributeValue>(
    _ name: String, _ keyPath: any WritableKeyPath<Root, Value> & Sendable, _ options: AttributeOption...
  ) -> CompositeElement { nested(name, keyPath, options) }
}

extension CompositeElements {
  @usableFromInline func leavesBelow(_ name: String) -> [(name: String, types: AttributeTypeSet)] {
    leaves.map { ("\(name).\($0.name)", $0.types) }
  }
}

/// A stored property of a struct, accessed by its memory offset: following a key path takes ten times as long.
@usableFromInline struct StoredPart<Root, Value>: Sendable {
  @usableFromInline let keyPath: any WritableKeyPath<Root, Value> & Sendable
  /// The offset in bytes; nil when the property isn't stored.
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
