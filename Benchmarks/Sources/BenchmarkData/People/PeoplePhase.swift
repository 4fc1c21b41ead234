/// The phases measured on people. The raw value is the name in results.
///
/// Phases are figures, not processes: a whole-file store reports several of them in one process.
public enum PeoplePhase: String, CaseIterable, Sendable {
  /// Create and relate all objects, and save them to a new store. Checksum: the number of persons.
  case insert = "W1"
  /// Fetch all persons and read every attribute.
  case readAll = "W2"
  /// Fetch the person in the middle of the sample by id.
  case readOne = "W3"
  /// Find persons of age 30 to 40 whose name begins with "A": the first hundred, sorted by name in byte order.
  case search = "W4"
  /// Visit a thousand persons one by one: the name of the employer, and the names of the friends.
  case walk = "W5"
  /// Add a year to each person with `id % 100 == 11`, then save.
  case update = "W6"
  /// Delete the persons with `id % 100 == 37`, then save.
  case delete = "W7"
  /// Count all persons, and compute the average age by company.
  case aggregate = "W8"

  /// Other figures with the same answer, measured in a different way.
  public var variants: [String] {
    switch self {
    case .insert: ["W1close", "W1save"]
    case .readAll: ["W2again"]
    case .readOne: ["W3again"]
    case .search: ["W4i"]
    case .walk: ["W5b"]
    case .update, .delete, .aggregate: []
    }
  }
}
