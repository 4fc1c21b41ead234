/// What is measured on people; the raw value is the name in results.
///
/// Phases are figures, not processes: a store that loads its whole file gives several in one process.
public enum PeoplePhase: String, CaseIterable, Sendable {
  /// Make all objects, relate them and save them into a fresh store. Checksum: the number of persons.
  case insert = "W1"
  /// Fetch all persons and read every attribute.
  case readAll = "W2"
  /// Fetch the person in the middle of the sample by its id.
  case readOne = "W3"
  /// Age 30 to 40 and a name that begins with "A", by name in byte order, the first hundred.
  case search = "W4"
  /// A thousand persons one by one: name of the employer, names of the friends.
  case walk = "W5"
  /// One year more for each person whose id leaves 11 when divided by 100, then a save.
  case update = "W6"
  /// Delete the persons whose id leaves 37 when divided by 100, then a save.
  case delete = "W7"
  /// Count, and average age by company.
  case aggregate = "W8"

  /// Other figures with the same answer: the same done in another way.
  public var variants: [String] {
    switch self {
    case .insert: ["W1close", "W1save"]
    case .readAll: ["W2again"]
    case .search: ["W4i"]
    case .walk: ["W5b"]
    case .readOne, .update, .delete, .aggregate: []
    }
  }
}
