import Holdfast
import HoldfastMemoryStore

@Entity final class Dog: ManagedObject {
  @Attribute(.unique) var chip: String?
  var name = ""
  @Relationship(deleteRule: .cascade, inverse: \Walk.dog) var walks: ToMany<Walk>
}
@Entity final class Walk: ManagedObject {
  var minutes = 0
  var dog: Dog?
}

let context = try PersistentContainer(for: Dog.self, Walk.self, store: .memory()).viewContext
let fido = context.insert(Dog.self) { $0.name = "Fido" }
for minutes in [25, 40, 90] {
  context.insert(Walk.self) { ($0.minutes, $0.dog) = (minutes, fido) }  // fido.walks contains it at once
}
try context.save()
let long = try context.fetch(Walk.self, sortedBy: \.minutes) { $0.minutes > 30 && $0.dog.name == "Fido" }
print(long.map(\.minutes))  // [40, 90]
