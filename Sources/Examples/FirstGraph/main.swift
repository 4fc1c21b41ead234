// swift-format-ignore-file
import Holdfast
import HoldfastMemoryStore

final class Dog: ManagedObject {
  var name: String { get { self[0] } set { self[0] = newValue } }
  var walks: ToMany<Walk> { toMany(0) }
  override class var properties: [PropertyBinding] {
    [.attribute("name", \Dog.name, slot: 0), .toMany("walks", \Dog.walks, index: 0)]
  }
}
final class Walk: ManagedObject {
  var dog: Dog? { get { toOne(0) } set { setToOne(0, newValue) } }
  var minutes: Int { get { self[1] } set { self[1] = newValue } }
  override class var properties: [PropertyBinding] {
    [.toOne("dog", \Walk.dog, slot: 0), .attribute("minutes", \Walk.minutes, slot: 1)]
  }
}
let model = try ManagedObjectModel(entities: [
  EntityDescription("Dog", attributes: [.init("name", .string)], relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
  EntityDescription("Walk", attributes: [.init("minutes", .integer32)], relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
])
let context = try PersistentContainer(model: model, classes: [Dog.self, Walk.self], store: .memory()).viewContext
let fido = context.insert(Dog.self)
fido.name = "Fido"
for minutes in [25, 40, 90] {
  let walk = context.insert(Walk.self)
  (walk.minutes, walk.dog) = (minutes, fido)  // fido.walks contains it immediately
}
try context.save()
let long = try context.fetch(Walk.self, sortedBy: \.minutes) { $0.minutes > 30 && $0.dog.name == "Fido" }
print(long.map(\.minutes))  // [40, 90]
