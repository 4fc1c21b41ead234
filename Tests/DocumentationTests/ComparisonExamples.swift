// swift-format-ignore-file
// Holdfast's program in *The same program four times*, word for word; `ComparisonTests` runs it.
#if Macros
import Holdfast
import HoldfastSQLiteStore

struct ComparedProgram {
@Entity final class Dog: ManagedObject {
  @Attribute(.length(1...40)) var name = ""
  @Relationship(deleteRule: .cascade, inverse: \Walk.dog) var walks: ToMany<Walk>
}
@Entity final class Walk: ManagedObject {
  var minutes = 0
  var dog: Dog?
}

@MainActor func program(at path: String) async throws -> [String] {
  let container = try PersistentContainer(for: Dog.self, Walk.self, store: .sqlite(at: path))
  let context = container.viewContext
  let fido = context.insert(Dog.self) { $0.name = "Fido" }
  context.insert(Walk.self) { ($0.minutes, $0.dog) = (40, fido) }
  try context.save()
  try await container.performBackgroundTask { context in
    let rex = context.insert(Dog.self) { $0.name = "Rex" }
    for minutes in 1...1_000 { context.insert(Walk.self) { ($0.minutes, $0.dog) = (minutes, rex) } }
    try context.save()
  }
  let long = try context.fetch(Walk.self, sortedBy: \.minutes) { $0.minutes > 997 && $0.dog.name == "Rex" }.map { "\($0.minutes)" }
  do {
    context.insert(Dog.self) { $0.name = "" }
    try context.save()
    return long
  } catch let error as PersistenceError where error.code == .stringTooShort {
    context.rollback()
    return long + [error.userMessage()]
  }
}
}
#endif
