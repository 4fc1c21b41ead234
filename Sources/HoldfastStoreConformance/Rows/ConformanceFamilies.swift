import HoldfastStore

/// A model with inheritance, and rows for it.
///
/// `Animal` is an abstract root entity with the subentities `Bird` (with `Parrot`) and `Cat`. `Keeper` has the subentity
/// `HeadKeeper`. Birds and cats both have a `title`, and each entity has a constraint on its own `tag`.
enum ConformanceFamilies {
  static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Animal", isAbstract: true,
          attributes: [AttributeDescription("chip", .integer64, isOptional: true), AttributeDescription("name", .string)],
          relationships: [
            .toOne("keeper", to: "Keeper", inverse: "animals"), .toMany("friends", to: "Animal", inverse: "friendOf"),
            .toMany("friendOf", to: "Animal", inverse: "friends"), .toMany("favouredBy", to: "Keeper", inverse: "favourite"),
          ],
          uniquenessConstraints: [["chip"]]),
        EntityDescription(
          "Bird", superentity: "Animal",
          attributes: [
            AttributeDescription("tag", .string, isOptional: true), AttributeDescription("title", .string, isOptional: true),
            AttributeDescription("wingspan", .double, isOptional: true),
          ],
          relationships: [.toOne("owner", to: "Keeper", inverse: "pet")],
          uniquenessConstraints: [["tag"]]),
        EntityDescription(
          "Parrot", superentity: "Bird", attributes: [AttributeDescription("words", .integer32, isOptional: true)],
          relationships: [.toMany("pupils", to: "Keeper", inverse: "teachers")]),
        EntityDescription(
          "Cat", superentity: "Animal",
          attributes: [
            AttributeDescription("lives", .integer16, isOptional: true), AttributeDescription("tag", .string, isOptional: true),
            AttributeDescription("title", .string, isOptional: true),
          ],
          uniquenessConstraints: [["tag"], ["name"]]),
        EntityDescription(
          "Keeper", attributes: [AttributeDescription("name", .string)],
          relationships: [
            .toMany("animals", to: "Animal", inverse: "keeper"), .toOne("favourite", to: "Animal", inverse: "favouredBy"),
            .toOne("pet", to: "Bird", inverse: "owner"), .toMany("teachers", to: "Parrot", inverse: "pupils"),
          ]),
        EntityDescription("HeadKeeper", superentity: "Keeper", attributes: [AttributeDescription("rank", .integer16, isOptional: true)]),
      ])
    } catch {
      preconditionFailure("A model of the conformance kit is invalid: \(error)")
    }
  }()

  /// The keys of the objects that ``zoo(_:)`` inserts.
  struct Keys {
    var birds: [ObjectKey] = []
    var parrots: [ObjectKey] = []
    var cats: [ObjectKey] = []
    var keepers: [ObjectKey] = []
    var heads: [ObjectKey] = []
    var animals: [ObjectKey] { birds + parrots + cats }
  }

  /// Inserts animals and keepers into a store and a graph. Names alternate between entities, so that sorted animals do too.
  static func zoo(_ store: TestedStore) throws -> (graph: ExpectedGraph, keys: Keys) {
    let graph = ExpectedGraph(store)
    let keys = Keys(
      birds: try store.keys("Bird", 5), parrots: try store.keys("Parrot", 4), cats: try store.keys("Cat", 6),
      keepers: try store.keys("Keeper", 3), heads: try store.keys("HeadKeeper", 2))
    let keepers = keys.keepers + keys.heads
    try store.save(graph) { edit in
      for (place, key) in keepers.enumerated() {
        let pointing: [String: StoreValue] = [
          "name": .string("Keeper \(place)"), "favourite": .key(keys.animals[place * 3]),
          "pet": place < 2 ? .key(keys.birds[place]) : place == 2 ? .key(keys.parrots[0]) : .null,
        ]
        if place < keys.keepers.count {
          edit.insert("Keeper", key, pointing)
        } else {
          edit.insert("HeadKeeper", key, pointing.merging(["rank": .int16(Int16(place))]) { a, _ in a })
        }
      }
      func animal(_ place: Int) -> [String: StoreValue] {
        [
          "name": .string("name \(place * 7 % 15)"), "chip": place % 4 == 3 ? .null : .int64(Int64(place * 10)),
          "keeper": place % 5 == 4 ? .null : .key(keepers[place % keepers.count]),
        ]
      }
      for (place, key) in keys.birds.enumerated() {
        let own: [String: StoreValue] = [
          "tag": .string("tag \(place)"), "title": .string("bird \(place)"), "wingspan": .double(Double(place) / 2),
          "owner": place < 2 ? .key(keepers[place]) : .null,
        ]
        edit.insert("Bird", key, animal(place).merging(own) { a, _ in a })
      }
      for (place, key) in keys.parrots.enumerated() {
        let own: [String: StoreValue] = [
          "tag": .string("tag \(place + 5)"), "words": .int32(Int32(place * 100)), "owner": place == 0 ? .key(keepers[2]) : .null,
        ]
        edit.insert("Parrot", key, animal(place + 5).merging(own) { a, _ in a })
        for pupil in keepers.prefix(place) { edit.link("Parrot", "pupils", key, pupil) }
      }
      for (place, key) in keys.cats.enumerated() {
        // Cats have the same tags as birds, which are different constraints.
        let own: [String: StoreValue] = [
          "tag": .string("tag \(place)"), "title": .string("cat \(place)"), "lives": .int16(Int16(9 - place)),
        ]
        edit.insert("Cat", key, animal(place + 9).merging(own) { a, _ in a })
      }
      for (place, key) in keys.animals.enumerated() {
        for step in 1...(1 + place % 3) { edit.link("Animal", "friends", key, keys.animals[(place + step * 4) % keys.animals.count]) }
      }
    }
    return (graph, keys)
  }
}
