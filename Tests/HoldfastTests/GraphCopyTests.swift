import Foundation
import HoldfastStore
import Testing

@testable import Holdfast

/// Copies of all objects of a store by several saves.
@Suite struct GraphCopyTests {
  /// A model whose entities are in the order Person, Work, Album. Links are named from the side of Work, because Album precedes Person.
  private func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription("Work", relationships: [.toMany("people", to: "Person", inverse: "works")]),
      EntityDescription("Album", superentity: "Work"),
      EntityDescription("Person", relationships: [.toMany("works", to: "Work", inverse: "people", isOrdered: true)]),
    ])
  }

  /// A store with three persons, each of whom has the same works in another order.
  private func filled(_ model: ManagedObjectModel) throws -> TestStore.Place {
    let place = try TestStore.memory.makePlace(model: model, classes: []), context = try place.context()
    let works = try ["Work", "Album", "Album", "Work"].map { try context.insert(entityNamed: $0) }
    for first in 0..<3 {
      let person = try context.insert(entityNamed: "Person")
      try person.setValue((0..<4).map { works[(first + 3 * $0) % 4] }, forKey: "works")
    }
    try context.save()
    try place.close()
    return place
  }

  /// A store that refuses to read a relationship of more than one source at once.
  private final class OneSourceStore: ForwardingStore {
    let base: any IncrementalStore

    init(_ base: any IncrementalStore) { self.base = base }

    func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
      if request.sources.count > 1 {
        throw StoreError(.tooLarge, operation: "read a relationship", reason: "The answer has more than one source.")
      }
      return try base.relationships(request, in: view, options: options)
    }
  }

  @Test func aStoreThatAnswersForOneSourceAtATimeIsReadWhole() throws {
    let model = try model(), place = try filled(model), source = place.description.makeStore()
    let identity = try source.open(model: model, host: .none).identity
    let whole = try GraphReader(source, model, identity), divided = try GraphReader(OneSourceStore(source), model, identity)
    for relationship in whole.linkRelationships {
      var lists: [[[ObjectKey]]] = [[], []]
      for (number, reader) in [whole, divided].enumerated() {
        try reader.forEachOwner(of: relationship) { owner, targets in lists[number].append([owner] + targets.map { $0.target }) }
      }
      #expect(lists[0] == lists[1] && lists[0].count >= 3, "\(relationship.name)")
    }
    #expect(try GraphDigest(divided) == GraphDigest(whole))
    try source.close()
  }

  @Test(arguments: TestStore.allCases) func anOrderIsCopiedIfItsEntityPrecedesTheOneThatNamesTheLinks(_ store: TestStore) throws {
    let model = try model(), place = try filled(model)
    let copied = try store.makePlace(model: model, classes: [])
    let source = place.description.makeStore(), destination = copied.description.makeStore()
    let reader = try GraphReader(source, model, try source.open(model: model, host: .none).identity)
    let identity = try destination.open(model: model, host: .none).identity
    var copy = GraphCopy(reader, to: destination, identity, partLinkCount: 1)
    try copy.run()
    #expect(try GraphDigest(GraphReader(destination, model, identity)) == GraphDigest(reader))
    try destination.close()
    try source.close()
    withExtendedLifetime(copied) {}
  }

  /// The bug: a copy trapped if the values of an object, which were saved one after the other, had more than 2 GiB together.
  @Test(arguments: TestStore.allCases) func valuesThatAreTooLargeForARowAreAnError(_ store: TestStore) throws {
    let attributes = ["first", "second"].map {
      AttributeDescription($0, .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
    }
    let model = try ManagedObjectModel(entities: [EntityDescription("Photo", attributes: attributes)])
    let place = try TestStore.json.makePlace(model: model, classes: []), context = try place.context()
    let photo = try context.insert(entityNamed: "Photo")
    for name in ["first", "second"] { try photo.setValue(.data(Data(repeating: 7, count: 200_000)), forKey: name) }
    try context.save()
    try place.close()

    let source = place.description.makeStore()
    let reader = try GraphReader(source, model, try source.open(model: model, host: .none).identity)
    for (limit, fits) in [(300_000, false), (500_000, true)] {
      let copied = try store.makePlace(model: model, classes: []), destination = copied.description.makeStore()
      let identity = try destination.open(model: model, host: .none).identity
      var copy = GraphCopy(reader, to: destination, identity, maximumRowByteCount: limit)
      if fits {
        try copy.run()
      } else {
        let error = #expect(throws: StoreError.self) { try copy.run() }
        #expect(error?.code == .tooLarge)
      }
      #expect(try GraphDigest(GraphReader(destination, model, identity)).objectCount == (fits ? 1 : 0))
      try destination.close()
      withExtendedLifetime(copied) {}
    }
    try source.close()
  }
}
