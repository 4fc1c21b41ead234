internal import BenchmarkData

/// The display text of a phase.
public struct PhaseText: Hashable, Sendable {
  /// The groups of phases in reports.
  public enum Group: String, CaseIterable, Sendable {
    case load, save, fetch, walk, order

    /// The heading.
    public var title: String {
      switch self {
      case .load: "Opening and loading"
      case .save: "Saving"
      case .fetch: "Fetching and aggregating"
      case .walk: "Following relationships"
      case .order: "Ordered lists and cascades"
      }
    }
  }

  /// The name in results.
  public let phase: String
  /// A title of at most 30 characters.
  public let title: String
  /// A description of the phase, as one sentence.
  public let text: String
  /// The group of the phase.
  public let group: Group

  private init(_ phase: String, _ group: Group, _ title: String, _ text: String) {
    (self.phase, self.group, self.title, self.text) = (phase, group, title, text)
  }

  /// The text of a phase. An unknown phase is represented by its name.
  public static func of(_ phase: String, _ input: MeasurementInput) -> PhaseText {
    all(input).first { $0.phase == phase } ?? PhaseText(phase, .fetch, phase, phase)
  }

  /// Sorts phases in display order, with unknown ones last.
  static func ordered(_ phases: [String], _ input: MeasurementInput) -> [String] {
    let known = all(input).map(\.phase)
    return known.filter(phases.contains) + phases.filter { !known.contains($0) }
  }

  /// The phases of an input, in display order.
  public static func all(_ input: MeasurementInput) -> [PhaseText] {
    switch input {
    case .people: people
    case .packages: packages
    case .lists: lists
    }
  }

  private static let people: [PhaseText] = [
    PhaseText("W3", .load, "open, find one object", "Open the store and fetch one person by a unique value."),
    PhaseText("W3again", .load, "open again, find one object", "Open the store a second time in the process, and fetch one person."),
    PhaseText("W2", .load, "open, load everything", "Open the store, fetch all persons and read every attribute."),
    PhaseText("W2again", .load, "read everything again", "Fetch all persons again in the context that created them."),
    PhaseText("W1", .save, "make and save everything", "Create and relate all persons and companies, and save them to a new store."),
    PhaseText("W1save", .save, "the save alone", "Only the save of all new objects."),
    PhaseText("W1close", .save, "and close the store", "The same, and close the store."),
    PhaseText("S1", .save, "20 saves of 1 changed object", "Change one person and save, twenty times."),
    PhaseText("S10", .save, "save 10 changed objects", "Change ten persons and save."),
    PhaseText("S100", .save, "save 100 changed objects", "Change a hundred persons and save."),
    PhaseText("S1000", .save, "save 1,000 changed objects", "Change a thousand persons and save."),
    PhaseText("W6", .save, "find and change 1 in 100", "Fetch one percent of the persons without an index, change each, and save."),
    PhaseText(
      "W7", .save, "find and delete 1 in 100", "Fetch one percent of the persons without an index, delete them with their links, and save."),
    PhaseText("W4", .fetch, "filter, sort, first 100", "Find persons by a range and a prefix, sorted by name: the first hundred."),
    PhaseText("W4i", .fetch, "the same with an index", "The same with an index on the name."),
    PhaseText("W8", .fetch, "count, average by group", "Count the persons, and compute the average age by company."),
    PhaseText("W5", .walk, "1,000 objects' relatives", "Visit a thousand persons one by one, each with employer and friends."),
    PhaseText("W5b", .walk, "the same, fetched together", "The same with one request for all of them."),
  ]

  private static let packages: [PhaseText] = [
    PhaseText("load", .load, "open, load everything", "Open the store, fetch all packages and read every attribute."),
    PhaseText("import", .save, "import in batches", "Import all packages, maintainers, sections and links in batches into a new store."),
    PhaseText("update", .save, "change a section", "Change every package of one section and save."),
    PhaseText("delete", .save, "delete a section", "Delete every package of one section with its links, and save."),
    PhaseText(
      "search", .fetch, "filter, sort, first 200",
      "Find packages by a prefix, a range of sizes and a substring, sorted: the first two hundred."),
    PhaseText("links", .walk, "follow every link", "Fetch all packages and follow every link of every kind."),
    PhaseText("traverse", .walk, "transitive dependencies", "Follow the dependencies of some packages transitively."),
  ]

  private static let lists: [PhaseText] = [
    PhaseText("make", .order, "make and save a list", "Create a list of objects with three links each, and save it."),
    PhaseText("moves", .order, "10,000 random moves", "Move ten thousand objects of the list to random positions."),
    PhaseText("moves-save", .order, "saving the moves", "Save the new order."),
    PhaseText("move-save", .order, "one move and its save", "Move one object and save."),
    PhaseText("cascade", .order, "delete the list", "Delete the list and all of its objects by a cascade, and save."),
  ]
}
