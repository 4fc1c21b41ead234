// swift-format-ignore-file
// The examples of *Coming from …*, word for word; `ComingFromTests` runs them.
#if Macros
import Foundation
import Holdfast
import HoldfastModelFile
import HoldfastSQLiteStore

struct FromCoreData {
  typealias Dog = FromGRDB.Dog

func openKennel(_ folder: String) throws -> PersistentContainer {
  let model = try ManagedObjectModel(contentsOf: folder + "/Kennel.xcdatamodeld")
  return try PersistentContainer(model: model, classes: [Dog.self], store: .sqlite(at: folder + "/Kennel.sqlite", isReadOnly: true))
}

func renameAll(_ container: PersistentContainer) async throws -> Int {
  try await container.performBackgroundTask { context in
    let dogs = try context.fetch(Dog.self) { $0.name == "" }
    for dog in dogs { dog.name = "Unnamed" }
    try context.save()
    return dogs.count  // a number can leave the closure, a dog can't
  }
}
}

struct FromSwiftData {
@Entity final class Trip: ManagedObject {
  @Attribute(.unique) var name: String
  @Attribute(.renamed(from: "start")) var begin: Date
  @Attribute(.external) var photo: Data?
  @Relationship(deleteRule: .cascade, inverse: \Stop.trip) var stops: OrderedToMany<Stop>
}
@Entity final class Stop: ManagedObject {
  var place: Place?
  @Attribute(.transient) var isSelected = false
  var trip: Trip?
}
@Composite struct Place {
  var city = ""
  var latitude = 0.0
}

func tripsToCities(_ context: ManagedObjectContext, north latitude: Double) throws -> [String] {
  try context.fetch(Trip.self, sortedBy: \.begin, limit: 20) { trip in
    trip.begin > Date(timeIntervalSinceReferenceDate: 0)
    trip.stops.any { $0.place.latitude > latitude }
  }.map(\.name)
}
}

struct FromGRDB {
@Entity final class Dog: ManagedObject {
  var name = ""
}
@Entity final class Walk: ManagedObject {
  var minutes = 0
}

func firstDogs(_ container: PersistentContainer) throws -> [Dog.Snapshot] {
  try container.withContext { context in
    try context.fetch(Dog.self, sortedBy: \.name, limit: 10).map { try Dog.Snapshot($0) }
  }
}

func move(_ minutes: Int, from: ManagedObjectID, to: ManagedObjectID, in container: PersistentContainer) throws {
  try container.withContext { context in
    guard let from = try context.existingObject(with: from) as? Walk, let to = try context.existingObject(with: to) as? Walk else { return }
    from.minutes -= minutes
    to.minutes += minutes
    try context.save()
  }
}
}
#endif
