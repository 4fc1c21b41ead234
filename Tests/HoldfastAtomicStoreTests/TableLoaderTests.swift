import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastAtomicStore

/// What a format passes to a loader.
@Suite struct TableLoaderTests {
  private let model: ManagedObjectModel

  init() throws {
    model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog",
        relationships: [
          .toMany("tags", to: "Tag", inverse: "dogs", isOrdered: true), .toMany("walks", to: "Walk", inverse: "dog", isOrdered: true),
        ]),
      EntityDescription("Tag", relationships: [.toMany("dogs", to: "Dog", inverse: "tags")]),
      EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
    ])
  }

  private func relationship(_ entity: String, _ name: String) throws -> ManagedObjectModel.Relationship {
    try #require(model.entity(named: entity)?.relationship(named: name))
  }

  private static func links(_ pairs: [(Int64, Int64)]) -> [SaveRequest.Link] {
    pairs.map { SaveRequest.Link(source: ObjectKey($0.0), target: ObjectKey($0.1)) }
  }

  /// Two dogs, two tags and three walks, of which the first two are those of the first dog.
  private func filledLoader() throws -> TableLoader {
    let loader = TableLoader(model: model, path: nil)
    let identity = try loader.begin(
      StoreFileHeader(
        storeUUID: "TABLE-LOADER-TESTS", generation: 1, versionHashes: model.entityVersionHashesByName,
        layoutHashes: model.entityLayoutHashesByName))
    for (name, rows) in [("Dog", [nil, nil]), ("Tag", [nil, nil]), ("Walk", [1, 1, 2])] as [(String, [Int64?])] {
      let entity = try #require(model.entity(named: name)), builder = RowBatchBuilder(entity: entity, identity: identity)
      for (place, dog) in rows.enumerated() {
        try builder.append(key: ObjectKey(Int64(place) + 1), version: 1, values: dog.map { [.int64($0)] } ?? [])
      }
      try loader.take(builder.seal(), of: entity.index)
    }
    return loader
  }

  /// The destinations and order keys of both dogs.
  private func answer(_ loaded: LoadedStore, _ name: String) throws -> [String] {
    let dog = try #require(model.entity(named: "Dog"))
    let request = RelationshipRequest(entity: dog.index, relationship: try relationship("Dog", name).index, sources: [1, 2])
    let answer = loaded.generation.relationships(request)
    return ["\(answer.offsets)", "\(answer.targets.map(\.rawValue))", "\(answer.orderKeys ?? [])"]
  }

  /// The bug: a second call for a relationship made the file count as damaged.
  @Test(arguments: [1, 2, 3]) func linksAndOrderKeysCanBeAddedInSeveralCalls(size: Int) throws {
    let loader = try filledLoader()
    let tags = Self.links([(2, 1), (1, 2), (1, 1)]), tagKeys: [Int64] = [4, 1, 2]
    let walks = Self.links([(2, 3), (1, 2), (1, 1)]), walkKeys: [Int64] = [1, 5, 6]
    let dogTags = try relationship("Dog", "tags"), tagDogs = try relationship("Tag", "dogs"), dogWalks = try relationship("Dog", "walks")
    for start in stride(from: 0, to: 3, by: size) {
      let range = start..<min(3, start + size), part = Array(tags[range])
      if dogTags.storesLinks {
        loader.take(links: part, of: dogTags)
      } else {
        loader.take(links: part.map { SaveRequest.Link(source: $0.target, target: $0.source) }, of: tagDogs)
      }
      loader.take(order: part, keys: Array(tagKeys[range]), of: dogTags)
      loader.take(order: Array(walks[range]), keys: Array(walkKeys[range]), of: dogWalks)
    }
    let loaded = try loader.finish()
    #expect(try answer(loaded, "tags") == ["[0, 2, 3]", "[1, 2, 1]", "[2, 1, 4]"])
    #expect(try answer(loaded, "walks") == ["[0, 2, 3]", "[1, 2, 3]", "[6, 5, 1]"])
  }

  @Test func aLinkThatTwoCallsAddIsDamage() throws {
    let loader = try filledLoader()
    let tags = try [relationship("Dog", "tags"), relationship("Tag", "dogs")].filter(\.storesLinks)
    for _ in 0..<2 { loader.take(links: Self.links([(1, 1)]), of: tags[0]) }
    let error = try #require(throws: StoreError.self) { try loader.finish() }
    #expect(error.code == .damaged && error.reason.contains("a link occurs twice"), "\(error)")
  }

  /// The bug: the links were ignored if the rows contained the same number of links, and links of a to-one relationship trapped.
  @Test(arguments: ["Dog.walks", "Walk.dog"]) func linksThatRowsContainAreRefused(_ name: String) throws {
    let loader = try filledLoader(), names = name.split(separator: ".").map(String.init)
    loader.take(links: Self.links([(2, 1), (2, 2), (2, 3)]), of: try relationship(names[0], names[1]))
    let error = try #require(throws: StoreError.self) { try loader.finish() }
    #expect(error.code == .damaged && error.reason.contains("part of the rows"), "\(error)")
  }
}
