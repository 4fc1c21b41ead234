import HoldfastAtomicStore
import HoldfastStore

/// How the objects of a model's entities look in a file: worked out once for reading or writing one.
struct XMLModel {
  /// The entities by index.
  let entities: [XMLEntity]
  /// The to-many relationships whose lists say what is linked, or in which order, each once however many entities inherit it.
  let listed: [ManagedObjectModel.Relationship]
  /// All other to-many relationships: their lists repeat what the other side says.
  let stated: [ManagedObjectModel.Relationship]
  /// The names of the entities as they are written, in the order of their indexes.
  let entityNames: NameTable

  /// Names of a model are ASCII and differ also apart from case, so no two are written alike.
  init(_ model: ManagedObjectModel) {
    let toMany = model.entities.flatMap(\.ownRelationships).filter(\.isToMany)
    let listed = toMany.filter { $0.isOrdered || XMLModel.namesLinks($0) }
    let stated = toMany.filter { !$0.isOrdered && !XMLModel.namesLinks($0) }
    (self.listed, self.stated) = (listed, stated)
    entities = model.entities.map { XMLEntity($0, model, listed, stated) }
    entityNames = NameTable(entities.map { (before: "", name: $0.name, behind: "") })
  }

  /// Whether the file says here, and not at the other end, what is linked.
  static func namesLinks(_ relationship: ManagedObjectModel.Relationship) -> Bool {
    relationship.isManyToMany && relationship.namesLinks
  }
}

/// The elements that an object of an entity has in a file, in their order.
struct XMLEntity {
  struct Field {
    /// The name as it is written.
    var name: String
    /// What the XML attribute `type` says.
    var type: String
    /// The destination's name as it is written; empty for an attribute.
    var destination = ""
    var kind: Kind
  }

  enum Kind {
    /// An attribute.
    case attribute(slot: Int, AttributeType)
    /// A to-one relationship.
    case target(slot: Int)
    /// A to-many relationship at a place in ``XMLModel/listed``.
    case targets(place: Int, isOrdered: Bool)
    /// A to-many relationship at a place in ``XMLModel/stated``.
    case stated(place: Int)
  }

  /// The name as it is written.
  let name: String
  let index: Int
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
    for (slot, property) in entity.slots.enumerated() {
      if case .attribute(let attribute) = property {
        let kind = Kind.attribute(slot: slot, attribute.type)
        fields.append(Field(name: attribute.name.lowercased(), type: XMLEntity.type(of: attribute.type), kind: kind))
      }
    }
    for (slot, property) in entity.slots.enumerated() {
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

  /// The bounds of how many objects it leads to. Core Data's to-one relationships that may not be empty have 1 as the least.
  private static func type(of relationship: ManagedObjectModel.Relationship) -> String {
    if relationship.isToMany { return "\(relationship.minCount)/\(relationship.maxCount)" }
    return relationship.isOptional ? "0/1" : "1/1"
  }

  /// What `type` says of an attribute's values. On disk: do not change.
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

/// The fields of an entity as reader and writer go over them: without anything to retain for each value of each object.
final class XMLFieldTable {
  let entity: XMLEntity?
  let count: Int
  /// The names, as the start tag of an attribute, or that of a relationship without its end.
  let names: NameTable
  private let kinds: UnsafeMutablePointer<XMLEntity.Kind>
  private let types: NameTable
  private let destinations: NameTable

  init(_ entity: XMLEntity?) {
    self.entity = entity
    let fields = entity?.fields ?? []
    count = fields.count
    // Names of properties are identifiers: nothing in them has to be escaped.
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

  /// What a field holds.
  @inline(__always) func kind(_ place: Int) -> XMLEntity.Kind { kinds[place] }

  /// What the XML attribute `type` says of a field.
  @inline(__always) func type(_ place: Int) -> UnsafeRawBufferPointer { types.label(place) }

  /// What the XML attribute `destination` says of a relationship.
  @inline(__always) func destination(_ place: Int) -> UnsafeRawBufferPointer { destinations.label(place) }

  /// The name of a field.
  func name(_ place: Int) -> String { entity?.fields[place].name ?? "" }

  /// The place of the field of a name, which is likely behind another; nil when there is none.
  @inline(__always) func place(named text: UnsafeRawBufferPointer, after last: Int) -> Int? { names.place(named: text, after: last) }
}
