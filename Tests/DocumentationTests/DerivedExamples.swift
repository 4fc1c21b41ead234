// swift-format-ignore-file
// The examples of *Derived attributes*, word for word; `SnippetTests` compares them, `DerivedTests` runs them.
import Holdfast

func dogsAndWalks() throws -> ManagedObjectModel {
  try ManagedObjectModel(entities: [
    EntityDescription(
      "Dog",
      attributes: [
        AttributeDescription("name", .string), .derived("searchName", .string, "canonical:(name)"),
        .derived("walkCount", .integer64, "walks.@count"), .derived("minutes", .integer64, "walks.minutes.@sum"),
        .derived("changed", .date, "now()"),
      ],
      relationships: [.toMany("walks", to: "Walk", inverse: "dog", deleteRule: .cascade)]),
    EntityDescription(
      "Walk", attributes: [AttributeDescription("minutes", .integer32), .derived("dogName", .string, "dog.name")],
      relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
  ])
}

func addWalk(of minutes: Int64, to dog: ManagedObject, in context: ManagedObjectContext) throws -> PropertyValue {
  let walk = try context.insert(entityNamed: "Walk")
  try walk.setValue(.int64(minutes), forKey: "minutes")
  try dog.toMany(forKey: "walks").insert(walk)
  try context.save()
  return try dog.value(forKey: "walkCount")
}

func numberThatDoesNotFit(in context: ManagedObjectContext) -> String? {
  do {
    try context.save()
    return nil
  } catch let error as PersistenceError where error.code == .numberTooLarge {
    return error.property
  } catch {
    return "\(error)"
  }
}
