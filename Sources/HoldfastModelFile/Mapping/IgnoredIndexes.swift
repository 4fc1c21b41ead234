import HoldfastStore

/// Marks indexes of a model file as ignored if no store can create them, so that the model can be read.
///
/// Xcode and Core Data accept such indexes. In a model declared in code, an index that isn't marked this way is an error.
struct IgnoredIndexes {
  private let byName: [String: EntityDescription]

  private init(_ entities: [EntityDescription]) {
    byName = Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The entities with their indexes marked. Their inheritance isn't checked yet.
  static func marked(_ entities: [EntityDescription]) -> [EntityDescription] {
    guard entities.contains(where: { !$0.indexes.isEmpty }) else { return entities }
    let marks = IgnoredIndexes(entities)
    return entities.map { entity in
      guard !entity.indexes.isEmpty else { return entity }
      var entity = entity
      let unusable = marks.unusableNames(of: entity)
      var names: Set<String> = []
      for place in entity.indexes.indices {
        let index = entity.indexes[place]
        let isUsable = !index.elements.isEmpty && !index.elements.contains { unusable.contains($0.property) || $0.isExpression }
        // Of several indexes with the same name, the first usable one is kept.
        entity.indexes[place].isIgnored = !(isUsable && names.insert(index.name.lowercased()).inserted)
      }
      return entity
    }
  }

  /// Throws if reading the entities from a file would mark other indexes.
  static func checkMarks(_ entities: [EntityDescription]) throws(ModelFileError) {
    for (entity, read) in zip(entities, marked(entities)) {
      guard let place = entity.indexes.indices.first(where: { entity.indexes[$0] != read.indexes[$0] }) else { continue }
      throw ModelFileError(
        unwritable: "index \(entity.indexes[place].name.quoted) of entity \(entity.name.quoted)",
        "A model file has no mark for ignored indexes, and reading it would mark other ones. Omit the index, or change its mark.")
    }
  }

  /// The names of properties, including inherited ones, that have no value in a row.
  private func unusableNames(of entity: EntityDescription) -> Set<String> {
    var names: Set<String> = [], seen: Set<String> = []
    var next: EntityDescription? = entity
    while let entity = next, seen.insert(entity.name).inserted {
      names.formUnion(entity.relationships.filter { $0.isToMany || $0.isTransient }.map(\.name))
      names.formUnion(entity.attributes.filter { $0.isTransient || $0.type == .composite }.map(\.name))
      names.formUnion(entity.fetchedProperties.map(\.name))
      next = entity.superentity.flatMap { byName[$0] }
    }
    return names
  }
}

extension FetchIndexElement {
  /// The property name that represents the object itself in a model file.
  static let wholeObject = "self"

  /// Whether the element isn't a property but the object itself or an expression, such as `lowercase:(name)`.
  var isExpression: Bool {
    property == Self.wholeObject
      || !property.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "_"), UInt8(ascii: "."):
          true
        default: false
        }
      }
  }
}
