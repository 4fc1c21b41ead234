internal import Holdfast
internal import HoldfastStore

/// An ordered list of entries.
final class StoredList: ManagedObject {
  override class var entityName: String { "List" }
  var name: String {
    get { self[0] }
    set { self[0] = newValue }
  }
  var entries: OrderedToMany<StoredEntry> { ordered(0) }
  override class var properties: [PropertyBinding] {
    [.attribute("name", \StoredList.name, slot: 0), .toMany("entries", \StoredList.entries, index: 0)]
  }
}

/// An entry of a list, with links to other entries.
final class StoredEntry: ManagedObject {
  override class var entityName: String { "Entry" }
  var list: StoredList? {
    get { toOne(0) }
    set { setToOne(0, newValue) }
  }
  var number: Int64 {
    get { self[1] }
    set { self[1] = newValue }
  }
  var linkedFrom: ToMany<StoredEntry> { toMany(0) }
  var links: ToMany<StoredEntry> { toMany(1) }
  override class var properties: [PropertyBinding] {
    [
      .toOne("list", \StoredEntry.list, slot: 0), .attribute("number", \StoredEntry.number, slot: 1),
      .toMany("linkedFrom", \StoredEntry.linkedFrom, index: 0), .toMany("links", \StoredEntry.links, index: 1),
    ]
  }
}

/// The model of the list input.
enum ListModel {
  static let classes: [ManagedObject.Type] = [StoredList.self, StoredEntry.self]

  static func make() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "List", attributes: [AttributeDescription("name", .string)],
        relationships: [.toMany("entries", to: "Entry", inverse: "list", deleteRule: .cascade, isOrdered: true)]),
      EntityDescription(
        "Entry", attributes: [AttributeDescription("number", .integer64)],
        relationships: [
          .toOne("list", to: "List", inverse: "entries"), .toMany("links", to: "Entry", inverse: "linkedFrom"),
          .toMany("linkedFrom", to: "Entry", inverse: "links"),
        ]),
    ])
  }
}
