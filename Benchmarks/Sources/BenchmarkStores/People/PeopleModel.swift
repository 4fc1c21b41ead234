internal import Holdfast
internal import HoldfastStore

/// The model of the people input.
enum PeopleModel {
  static let classes: [ManagedObject.Type] = [StoredPerson.self, StoredCompany.self]

  /// Creates the model.
  ///
  /// - Parameter indexesNames: Whether the model has an index on names. It doesn't affect answers.
  static func make(indexesNames: Bool = false) throws -> ManagedObjectModel {
    var person = person
    if indexesNames { person.indexes = [FetchIndexDescription("byName", ["name"])] }
    return try ManagedObjectModel(entities: [company, person])
  }

  private static let person = EntityDescription(
    "Person",
    attributes: [
      AttributeDescription("id", .integer64), AttributeDescription("name", .string), AttributeDescription("email", .string),
      AttributeDescription("age", .integer16), AttributeDescription("height", .double), AttributeDescription("isActive", .boolean),
      AttributeDescription("birthday", .date), AttributeDescription("uid", .uuid),
      AttributeDescription("notes", .string, isOptional: true), AttributeDescription("avatar", .binaryData, isOptional: true),
    ],
    relationships: [
      .toOne("employer", to: "Company", inverse: "employees"), .toMany("friends", to: "Person", inverse: "friendOf"),
      .toMany("friendOf", to: "Person", inverse: "friends"),
    ],
    uniquenessConstraints: [["id"]])

  private static let company = EntityDescription(
    "Company", attributes: [AttributeDescription("name", .string), AttributeDescription("founded", .date)],
    relationships: [.toMany("employees", to: "Person", inverse: "employer")])
}
