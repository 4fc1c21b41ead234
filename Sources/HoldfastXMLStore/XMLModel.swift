import HoldfastAtomicStore
import HoldfastStore

/// The layout of a model's objects in a file, computed once per read or write.
struct XMLModel {
  /// The entities by index.
  let entities: [XMLEntity]
  /// The to-many relationships whose lists define the links or their order. An inherited relationship appears once.
  let listed: [ManagedObjectModel.Relationship]
  /// All other to-many relationships. Their lists repeat the links that the other side defines.
  let stated: [ManagedObjectModel.Relationship]
  /// The names of the entities as written, by index.
  let entityNames: NameTable

  /// Computes the layout. Names in a model are ASCII and differ by more than case, so no two have the same written form.
  init(_ model: ManagedObjectModel) {
    let toMany = model.entities.flatMap(\.ownRelationships).filter(\.isToMany)
    let listed = toMany.filter { $0.isOrdered || $0.storesLinks }
    let stated = toMany.filter { !$0.isOrdered && !$0.storesLinks }
    (self.listed, self.stated) = (listed, stated)
    entities = model.entities.map { XMLEntity($0, model, listed, stated) }
    entityNames = NameTable(entities.map { (before: "", name: $0.name, behind: "") })
  }
}

/// The elements of an entity's objects in a file, in their order.
struct XMLEntity {
  struct Field {
    /// The name as written.
    var name: String
    /// The value of the XML attribute `type`.
    var type: String
    /// The destination entity's name as written; empty for an attribute.
    var destination = ""
    var kind: Kind
  }

  enum Kind {
    /// An attribute.
    case attribute(slot: SlotIndex, AttributeType)
    /// A to-one relationship.
    case target(slot: SlotIndex)
    /// A to-many relationship; `place` is its index in ``XMLModel/listed``.
    case targets(place: Int, isOrdered: Bool)
    /// A to-many relationship; `place` is its index in ``XMLModel/stated``.
    case stated(place: Int)
  }

  /// The name as written.
  let name: String
  let index: EntityIndex
  let isAbstract: Bool
  let fields: [Field]

  init(
    _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel, _ listed: [ManagedObjectModel.Relationship],
    _ stated: [ManagedObjectModel.Relationship]
  ) {
    (name, index, isAbstract) = (entity.name.uppercased(), entity.index, entity.isAbstract)
    var fields: [Field] = []
    func add(_ relationship: ManagedObjectModel.Relationship, _ kind: Kind) {
      fields.append(
        Field(
          name: relationship.name.lowercased(), type: XMLEntity.type(of: relationship),
          destination: model.entities[relationship.destinationIndex].name.uppercased(), kind: kind))
    }
    for (slot, property) in zip(entity.slotIndexes, entity.slots) {
      if case .attribute(let attribute) = property {
        let kind = Kind.attribute(slot: slot, attribute.type)
        fields.append(Field(name: attribute.name.lowercased(), type: XMLEntity.type(of: attribute.type), kind: kind))
      }
    }
    for (slot, property) in zip(entity.slotIndexes, entity.slots) {
      if case .toOne(let relationship) = property { add(relationship, .target(slot: slot)) }
    }
    for relationship in entity.toManyRelationships {
      if let place = listed.firstIndex(of: relationship) {
        add(relationship, .targets(place: place, isOrdered: relationship.isOrdered))
      } else if let place = stated.firstIndex(of: relationship) {
        add(relationship, .stated(place: place))
      }
    }
    self.fields = fields
  }

  /// The minimum and maximum number of destinations. Core Data uses the minimum 1 for required to-one relationships.
  private static func type(of relationship: ManagedObjectModel.Relationship) -> String {
    if relationship.isToMany { return "\(relationship.minCount)/\(relationship.maxCount)" }
    return relationship.isOptional ? "0/1" : "1/1"
  }

  /// The type of attribute that has an XML attribute `type`; binary data for several. Nil for an unknown one.
  static func attributeType(_ text: String) -> AttributeType? { AttributeType.allCases.first { type(of: $0) == text } }

  /// The XML attribute `type` of an attribute. On disk: do not change.
  private static func type(of type: AttributeType) -> String {
    switch type {
    case .integer16: "int16"
    case .integer32: "int32"
    case .integer64: "int64"
    case .decimal: "decimal"
    case .double: "double"
    case .float: "float"
    case .string: "string"
    case .boolean: "bool"
    case .date: "date"
    case .binaryData, .transformable, .composite, .undefined: "binary"
    case .uuid: "uuid"
    case .uri: "uri"
    case .objectID: "objectID"
    }
  }
}

/// The fields of an entity, stored so that reading or writing a value doesn't retain anything.
final class XMLFieldTable {
  let entity: XMLEntity?
  let count: Int
  /// For each field, the start tag of the attribute, or the relationship's tag up to its destination.
  let names: NameTable
  private let kinds: UnsafeMutablePointer<XMLEntity.Kind>
  private let types: NameTable
  private let destinations: NameTable

  init(_ entity: XMLEntity?) {
    self.entity = entity
    let fields = entity?.fields ?? []
    count = fields.count
    // Property names are identifiers and need no escaping.
    names = NameTable(
      fields.map { field in
        field.destination.isEmpty
          ? (before: "<attribute name=\"", name: field.name, behind: "\" type=\"\(field.type)\">")
          : (
            before: "<relationship name=\"", name: field.name, behind: "\" type=\"\(field.type)\" destination=\"\(field.destination)\""
          )
      })
    types = NameTable(fields.map { (before: "", name: $0.type, behind: "") })
    destinations = NameTable(fields.map { (before: "", name: $0.destination, behind: "") })
    kinds = .allocate(capacity: max(count, 1))
    for (place, field) in fields.enumerated() { (kinds + place).initialize(to: field.kind) }
  }

  deinit { kinds.deallocate() }

  /// The kind of the field at an index.
  @inline(__always) func kind(_ place: Int) -> XMLEntity.Kind { kinds[place] }

  /// The XML attribute `type` of the field at an index.
  @inline(__always) func type(_ place: Int) -> UnsafeRawBufferPointer { types.label(place) }

  /// The XML attribute `destination` of the relationship at an index.
  @inline(__always) func destination(_ place: Int) -> UnsafeRawBufferPointer { destinations.label(place) }

  /// The name of the field at an index.
  func name(_ place: Int) -> String { entity?.fields[place].name ?? "" }

  /// The index of the field with a name, or nil if there is none. The search starts after `last`.
  @inline(__always) func place(named text: UnsafeRawBufferPointer, after last: Int) -> Int? { names.place(named: text, after: last) }
}
