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

  @Test(arguments: TestStore.allCases) func anOrderIsCopiedIfItsEntityPrecedesTheOneThatNamesTheLinks(_ store: TestStore) throws {
    let model = try model(), place = try TestStore.memory.makePlace(model: model, classes: []), context = try place.context()
    let works = try ["Work", "Album", "Album", "Work"].map { try context.insert(entityNamed: $0) }
    for first in 0..<3 {
      let person = try context.insert(entityNamed: "Person")
      try person.setValue((0..<4).map { works[(first + 3 * $0) % 4] }, forKey: "works")
    }
    try context.save()
    try place.close()

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
}
