#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A property by which a query can group, or which it can aggregate: the end of a key path such as `\.dog` or `\.home.city`.
public struct FetchColumn<Root: ManagedObject, Value> {
  let columnName: String
  /// The value in the form of the property.
  let read: (StoreValue, ContextCore) throws -> Value
}

/// A composite attribute, by whose elements a query can group.
@dynamicMemberLookup public struct FetchCompositeColumn<Root: ManagedObject, Composite: CompositeAttributeValue> {
  let columnName: String

  /// An element. Objects without a composite value have none.
  public subscript<Value: AttributeValue>(dynamicMember keyPath: KeyPath<Composite, Value>) -> FetchColumn<Root, Value?> {
    FetchColumn(attribute: "\(columnName).\(Composite.elementName(keyPath))")
  }

  /// An optional element.
  public subscript<Value: AttributeValue>(dynamicMember keyPath: KeyPath<Composite, Value?>) -> FetchColumn<Root, Value?> {
    FetchColumn(attribute: "\(columnName).\(Composite.elementName(keyPath))")
  }

  /// A composite element.
  public subscript<Value: CompositeAttributeValue>(dynamicMember keyPath: KeyPath<Composite, Value>) -> FetchCompositeColumn<Root, Value> {
    FetchCompositeColumn<Root, Value>(columnName: "\(columnName).\(Composite.elementName(keyPath))")
  }

  /// An optional composite element.
  public subscript<Value: CompositeAttributeValue>(dynamicMember keyPath: KeyPath<Composite, Value?>) -> FetchCompositeColumn<Root, Value> {
    FetchCompositeColumn<Root, Value>(columnName: "\(columnName).\(Composite.elementName(keyPath))")
  }
}

extension FetchColumn where Value: AttributeValue {
  init(attribute name: String) { self.init(columnName: name) { value, _ in value.attribute() } }
}

/// The properties of a class by which a query can group: its attributes, elements of its composite attributes, and to-one relationships.
@dynamicMemberLookup public struct FetchColumns<Root: ManagedObject> {
  /// An attribute.
  public subscript<Value: AttributeValue>(dynamicMember keyPath: KeyPath<Root, Value>) -> FetchColumn<Root, Value> {
    FetchColumn(attribute: KeyPathNames.name(keyPath, in: Root.self))
  }

  /// A to-one relationship. Its values are the destinations, as faults; creating them sends no request.
  public subscript<Destination: ManagedObject>(dynamicMember keyPath: KeyPath<Root, Destination?>) -> FetchColumn<Root, Destination?> {
    FetchColumn(columnName: KeyPathNames.name(keyPath, in: Root.self)) { value, context in
      guard case .objectID(let id) = value else { return nil }
      return try context.object(with: id).typed()
    }
  }

  /// A composite attribute.
  public subscript<Value: CompositeAttributeValue>(dynamicMember keyPath: KeyPath<Root, Value>) -> FetchCompositeColumn<Root, Value> {
    FetchCompositeColumn(columnName: KeyPathNames.name(keyPath, in: Root.self))
  }

  /// An optional composite attribute.
  public subscript<Value: CompositeAttributeValue>(dynamicMember keyPath: KeyPath<Root, Value?>) -> FetchCompositeColumn<Root, Value> {
    FetchCompositeColumn(columnName: KeyPathNames.name(keyPath, in: Root.self))
  }
}

/// A key path such as `\.minutes`, to a property that a query can group by or aggregate.
public typealias FetchColumnKeyPath<Root: ManagedObject, Value> = KeyPath<FetchColumns<Root>, FetchColumn<Root, Value>>

/// A value that a query computes from a group of objects.
public struct FetchAggregate<Root: ManagedObject, Value> {
  let column: DictionaryFetchColumn
  let read: (StoreValue) -> Value
}

/// A type of number that can be summed.
public protocol NumberAttributeValue: AttributeValue {
  /// The type of sums.
  associatedtype Sum: AttributeValue
  /// The type of averages.
  associatedtype Average: AttributeValue
}

extension Int16: NumberAttributeValue {
  /// The type of sums, which is wider than the values.
  public typealias Sum = Int
  /// The type of averages.
  public typealias Average = Double
}
extension Int32: NumberAttributeValue {
  /// The type of sums, which is wider than the values.
  public typealias Sum = Int
  /// The type of averages.
  public typealias Average = Double
}
extension Int64: NumberAttributeValue {
  /// The type of sums.
  public typealias Sum = Int
  /// The type of averages.
  public typealias Average = Double
}
extension Int: NumberAttributeValue {
  /// The type of sums.
  public typealias Sum = Int
  /// The type of averages.
  public typealias Average = Double
}
extension Float: NumberAttributeValue {
  /// The type of sums.
  public typealias Sum = Double
  /// The type of averages.
  public typealias Average = Double
}
extension Double: NumberAttributeValue {
  /// The type of sums.
  public typealias Sum = Double
  /// The type of averages.
  public typealias Average = Double
}
extension Decimal: NumberAttributeValue {
  /// The type of sums.
  public typealias Sum = Decimal
  /// The type of averages.
  public typealias Average = Decimal
}
extension Optional: NumberAttributeValue where Wrapped: NumberAttributeValue {
  /// The type of sums. The sum of no values is 0.
  public typealias Sum = Wrapped.Sum
  /// The type of averages.
  public typealias Average = Wrapped.Average
}

/// The objects from which an aggregate is computed: what the closure of `aggregate` receives.
///
/// Objects without a value are left out of all but ``count()``.
public struct FetchGroup<Root: ManagedObject> {
  /// The number of objects.
  public func count() -> FetchAggregate<Root, Int> { FetchAggregate(column: .count(nil)) { $0.attribute() } }

  /// The number of objects that have a value for a property.
  public func count<Value>(_ keyPath: FetchColumnKeyPath<Root, Value>) -> FetchAggregate<Root, Int> {
    FetchAggregate(column: .count(name(keyPath))) { $0.attribute() }
  }

  /// The sum of the values; 0 if there are none. The request throws if a sum of whole numbers doesn't fit in 64 bits.
  public func sum<Value: NumberAttributeValue>(_ keyPath: FetchColumnKeyPath<Root, Value>) -> FetchAggregate<Root, Value.Sum> {
    FetchAggregate(column: .sum(name(keyPath))) { $0.attribute() }
  }

  /// The average of the values; nil if there are none.
  public func average<Value: NumberAttributeValue>(_ keyPath: FetchColumnKeyPath<Root, Value>) -> FetchAggregate<Root, Value.Average?> {
    FetchAggregate(column: .average(name(keyPath))) { $0.attribute() }
  }

  /// The minimum of the values; nil if there are none.
  public func minimum<Value: OrderedAttributeValue>(_ keyPath: FetchColumnKeyPath<Root, Value>) -> FetchAggregate<Root, Value.Plain?> {
    FetchAggregate(column: .minimum(name(keyPath))) { $0.attribute() }
  }

  /// The maximum of the values; nil if there are none.
  public func maximum<Value: OrderedAttributeValue>(_ keyPath: FetchColumnKeyPath<Root, Value>) -> FetchAggregate<Root, Value.Plain?> {
    FetchAggregate(column: .maximum(name(keyPath))) { $0.attribute() }
  }

  private func name<Value>(_ keyPath: FetchColumnKeyPath<Root, Value>) -> String { FetchColumns()[keyPath: keyPath].columnName }
}

extension StoreValue {
  /// The value as an attribute reads it. The most frequent types need no temporary row.
  fileprivate func attribute<Value: AttributeValue>() -> Value {
    switch self {
    case .int64(let number): if let value = Int(number) as? Value { return value }
    case .double(let number): if let value = number as? Value { return value }
    case .string(let text): if let value = text as? Value { return value }
    default: break
    }
    return Value.said(by: self) ?? Value.load(AbsentRow.pointer, 0)
  }
}

// MARK: Requests

extension ManagedObjectContext {
  /// Computes values from all objects of a class that match conditions.
  ///
  /// ```swift
  /// let (count, minutes) = try context.aggregate(Walk.self) { ($0.count(), $0.sum(\.minutes)) }
  /// ```
  ///
  /// The store computes them if it can. They reflect what is saved there, never unsaved changes of a context.
  ///
  /// - Throws: The same errors as ``fetch(_:)-(DictionaryFetchRequest<Root>)``.
  public func aggregate<Root: ManagedObject, each Value>(
    _ type: Root.Type, _ values: (FetchGroup<Root>) -> (repeat FetchAggregate<Root, each Value>),
    @FetchPredicateBuilder<Root> where conditions: (FetchPath<Root, Root>) -> FetchPredicate<Root> = { _ in .all }
  ) throws -> (repeat each Value) {
    let aggregates = values(FetchGroup())
    var columns: [DictionaryFetchColumn] = []
    repeat columns.append((each aggregates).column)
    let request = DictionaryFetchRequest(where: FetchPredicate(conditions), columns: [:])
    var row = (try core.groups(request, columns).first ?? []).makeIterator()
    return (repeat (each aggregates).read(row.next() ?? .null))
  }

  /// Computes values from each group of objects with the same value of a property.
  ///
  /// ```swift
  /// let walks = try context.aggregate(Walk.self, by: \.dog) { ($0.count(), $0.average(\.minutes)) }
  /// for (dog, (count, minutes)) in walks { print(dog?.name ?? "no dog", count, minutes ?? 0) }
  /// ```
  ///
  /// The store computes them if it can. They reflect what is saved there, never unsaved changes of a context.
  ///
  /// - Returns: An element for each group, sorted by the property, nil first. Destinations are sorted by their IDs. A key is what the
  ///   property would return: if it isn't optional, objects without a value are a group with the type's zero, which can be there twice. The
  ///   same applies to raw values without a case.
  /// - Throws: The same errors as ``fetch(_:)-(DictionaryFetchRequest<Root>)``.
  public func aggregate<Root: ManagedObject, Key, each Value>(
    _ type: Root.Type, by keyPath: FetchColumnKeyPath<Root, Key>,
    _ values: (FetchGroup<Root>) -> (repeat FetchAggregate<Root, each Value>),
    @FetchPredicateBuilder<Root> where conditions: (FetchPath<Root, Root>) -> FetchPredicate<Root> = { _ in .all }
  ) throws -> [(key: Key, value: (repeat each Value))] {
    let (key, aggregates) = (FetchColumns<Root>()[keyPath: keyPath], values(FetchGroup()))
    var columns = [DictionaryFetchColumn.property(key.columnName)]
    repeat columns.append((each aggregates).column)
    let request = DictionaryFetchRequest(where: FetchPredicate(conditions), columns: [:], groupedBy: [key.columnName])
    return try core.groups(request, columns).map { values in
      var row = values.makeIterator()
      return (try key.read(row.next() ?? .null, core), (repeat (each aggregates).read(row.next() ?? .null)))
    }
  }
}
