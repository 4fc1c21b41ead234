import Holdfast
import HoldfastMemoryStore
import Testing

/// The entity of a class.
@Suite struct EntityNameTests {
  class Boat: ManagedObject {
    var name: String {
      get { self[0] }
      set { self[0] = newValue }
    }
    override class var properties: [PropertyBinding] { [.attribute("name", \Boat.name, slot: 0)] }
  }
  final class Tug: Boat {}
  final class Raft: ManagedObject {
    override class var entityName: String { "Barge" }
  }

  private func context(_ classes: [ManagedObject.Type]) throws -> ManagedObjectContext {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Boat", attributes: [AttributeDescription("name", .string, default: .string("none"))]),
      EntityDescription("Tug", superentity: "Boat"), EntityDescription("Barge"),
    ])
    return try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .memory()), classes: classes)
  }

  @Test func theEntityOfAClassDefaultsToItsName() throws {
    let context = try context([Boat.self, Tug.self, Raft.self])
    let tug = context.insert(Tug.self)
    tug.name = "Theodore"
    #expect(tug.entity.name == "Tug" && context.insert(Boat.self).entity.name == "Boat" && context.insert(Raft.self).entity.name == "Barge")
    try context.save()
    #expect(try context.fetch(FetchRequest<Boat> { $0.name == "Theodore" }).map { type(of: $0) == Tug.self } == [true])
    #expect(try context.fetch(FetchRequest<Raft>()).count == 1)
  }

  @Test func managedObjectCanHaveAnyEntity() { #expect(ManagedObject.entityName.isEmpty) }

  @Test func aClassWithoutAnEntityIsNamed() {
    final class Submarine: ManagedObject {}
    let error = #expect(throws: PersistenceError.self) { try context([Submarine.self]) }
    #expect(error?.reason.contains("The model has no entity Submarine.") == true, "\(error.map { "\($0)" } ?? "")")
  }
}
