// swift-format-ignore-file
// The examples of the macros, word for word; `SnippetTests` compares them, `MacroTests` runs them.
#if Macros
import Foundation
import Holdfast
import HoldfastSQLiteStore

enum MacroKennel {
@Entity final class Dog: ManagedObject {
  @Attribute(.unique) var chip: String?
  var name = ""
  @Relationship(deleteRule: .cascade, inverse: \Walk.dog) var walks: ToMany<Walk>
}
@Entity final class Walk: ManagedObject {
  var minutes = 0
  var dog: Dog?
}

@MainActor static func walk(_ path: String) throws -> (PersistentContainer, Dog) {
  let container = try PersistentContainer(for: Dog.self, Walk.self, store: .sqlite(at: path))
  let context = container.viewContext
  let fido = context.insert(Dog.self) { $0.name = "Fido" }
  context.insert(Walk.self) {
    $0.minutes = 40
    $0.dog = fido
  }
  try context.save()
  return (container, fido)
}
}

enum MacroRoutes {
enum Kind: Int16, CaseIterable, AttributeValue { case shop, park }

@Composite struct Place {
  @Attribute(.length(1...40)) var city: String?
  var latitude = 0.0
}

@Entity final class Stop: ManagedObject {
  @Attribute(.length(1...40)) var title = "Stop"
  var kind: Kind = .shop
  var place: Place?
  @Attribute(.codable) var tags: [String] = []
  @Attribute(.transient) var isSelected = false
  var created = Date()
  var route: Route?
}

@Entity final class Route: ManagedObject {
  @Relationship(.count(1...20), deleteRule: .cascade, inverse: \Stop.route) var stops: OrderedToMany<Stop>
  @Relationship(inverse: \Route.returns) var goes: Route?
  @Relationship var returns: Route?
}
}

enum MacroHikes {
@Entity final class Hiker: ManagedObject {
  var name = ""
  @Relationship(deleteRule: .cascade, inverse: \Hike.hiker) var hikes: ToMany<Hike>
  @Attribute(.derived(copyOf: \Hiker.name, as: .canonical)) var searchName: String?
  @Attribute(.derived(countOf: \Hiker.hikes)) var hikeCount: Int?
  @Attribute(.derived(sumOf: \Hike.minutes, through: \Hiker.hikes)) var minutes: Int?
}
@Entity final class Hike: ManagedObject {
  var minutes = 0
  var hiker: Hiker?
  @Attribute(.derived(copyOf: \Hiker.name, through: \Hike.hiker)) var hikerName: String?
}
}

enum MacroGarden {
@Entity(isAbstract: true) class Place2D: ManagedObject {
  var x = 0.0
  var y = 0.0
  #Index<Place2D>([\.x, \.y])
}
@Entity final class Tree: Place2D {
  var species = ""
  #Unique<Tree>([\.x, \.y])
}

static func tree(_ context: ManagedObjectContext) -> Tree {
  let tree = Tree(context: context, species: "oak")
  tree.x = 1.5
  return tree
}

static func planted(_ tree: Tree, _ context: ManagedObjectContext) throws -> Tree {
  let body = try JSONEncoder().encode(Tree.Snapshot(tree))
  let planted = try context.insert(JSONDecoder().decode(Tree.Snapshot.self, from: body))
  return planted
}
}

enum MacroOptions {
@Composite struct Place {
  @Attribute(.length(1...40)) var city: String?
  var latitude = 0.0
}

@Entity final class Owner: ManagedObject {
  var name = ""
}

@Entity final class Dog: ManagedObject {
  @Attribute(.unique, .length(1...15)) var chip: String?
  @Attribute(.transient) var isSelected = false
  var name = ""
  var owner: Owner?
  var home: Place?
  #Unique<Dog>([\.owner, \.name], [\.home?.city, \.name])
  #Index<Dog>([\.name], [\.home?.city, \.name])
}
}
#endif
