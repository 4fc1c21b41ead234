import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Links to deleted objects, left by relationships without a delete action: the file opens again, and everything else is unchanged.
@Suite struct LeftLinkTests {
  /// The kinds of the relationship from a crew to its ships and of its inverse.
  struct Shape: Sendable, CustomStringConvertible {
    var forward: Ends
    var backward: Ends

    enum Ends: String, CaseIterable { case one, many, ordered }

    var description: String { "\(forward.rawValue) and \(backward.rawValue)" }

    static let all = Ends.allCases.flatMap { forward in Ends.allCases.map { Shape(forward: forward, backward: $0) } }

    /// The model, with either entity first in alphabetical order, which decides which end stores the links.
    func model(_ isReversed: Bool) throws -> ManagedObjectModel {
      let (crew, ship) = isReversed ? ("Zoo", "Ark") : ("Crew", "Ship")
      return try ManagedObjectModel(entities: [
        EntityDescription(
          crew, attributes: [AttributeDescription("name", .string, isOptional: true)],
          relationships: [Shape.relationship("ships", to: ship, inverse: "crews", forward)]),
        EntityDescription(
          ship, attributes: [AttributeDescription("name", .string, isOptional: true)],
          relationships: [Shape.relationship("crews", to: crew, inverse: "ships", backward)]),
      ])
    }

    private static func relationship(_ name: String, to destination: String, inverse: String, _ ends: Ends) -> RelationshipDescription {
      ends == .one
        ? .toOne(name, to: destination, inverse: inverse, deleteRule: .noAction)
        : .toMany(name, to: destination, inverse: inverse, deleteRule: .noAction, isOrdered: ends == .ordered)
    }
  }

  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  @Test(arguments: FileStore.all, Shape.all)
  func aFileWithLinksToDeletedObjectsOpensAgain(store: FileStore, shape: Shape) throws {
    for (isReversed, deletesCrew) in [(false, false), (false, true), (true, false), (true, true)] {
      let model = try shape.model(isReversed), path = folder.file("\(isReversed) \(deletesCrew)")
      let (crew, ship) = isReversed ? ("Zoo", "Ark") : ("Crew", "Ship")
      func opened() throws -> ManagedObjectContext {
        try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store.description(at: path)))
      }
      func all(_ entity: String, _ context: ManagedObjectContext) throws -> [ManagedObject] {
        try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).sorted { $0.objectID.key < $1.objectID.key }
      }
      var context = try opened()
      let crews = try (0..<3).map { _ in try context.insert(entityNamed: crew) }
      let ships = try (0..<3).map { _ in try context.insert(entityNamed: ship) }
      for place in 0..<3 { try link(crews[place], shape.forward == .one ? [ships[place]] : ships, shape) }
      try context.save()
      context.delete(deletesCrew ? crews[1] : ships[1])
      try context.save()
      // Twice, because the first opening may drop links to missing objects.
      for round in 0..<2 {
        try context.persistentStoreCoordinator.close()
        context = try opened()
        let (crews, ships) = (try all(crew, context), try all(ship, context))
        #expect((crews.count, ships.count) == (deletesCrew ? 2 : 3, deletesCrew ? 3 : 2))
        for object in crews + ships {
          for relationship in object.entity.relationships where relationship.isToMany {
            let present = Set((crews + ships).map(\.objectID))
            let targets = try object.value(forKey: relationship.name).objects?.map(\.objectID) ?? []
            #expect(Set(targets).count == targets.count && targets.filter(present.contains).count <= 3)
          }
          try object.setValue(.string("Round \(round)"), forKey: "name")
        }
        // All remaining crews are still linked to all remaining ships.
        if shape.forward != .one, shape.backward != .one {
          let left = Set(ships.map(\.objectID))
          for crew in crews {
            let targets = try crew.value(forKey: "ships").objects?.map(\.objectID) ?? []
            #expect(Set(targets).isSuperset(of: left), "\(isReversed), \(deletesCrew)")
          }
        }
        try context.save()
      }
      try context.persistentStoreCoordinator.close()
      #expect(try store.fault(at: path) == nil)
    }
  }

  private func link(_ crew: ManagedObject, _ ships: [ManagedObject], _ shape: Shape) throws {
    switch shape.forward {
    case .one: try crew.setValue(.objectID(ships[0].objectID), forKey: "ships")
    case .many: for ship in ships { try crew.toMany(forKey: "ships").insert(ship) }
    case .ordered: for ship in ships { try crew.ordered(forKey: "ships").append(ship) }
    }
  }
}
