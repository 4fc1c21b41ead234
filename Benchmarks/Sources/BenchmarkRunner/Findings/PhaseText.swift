internal import BenchmarkData

/// What people read of a phase.
public struct PhaseText: Hashable, Sendable {
  /// What people look for when they compare.
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
  /// A few words, in at most 30 characters.
  public let title: String
  /// What is done, in one sentence.
  public let text: String
  /// Where it belongs.
  public let group: Group

  private init(_ phase: String, _ group: Group, _ title: String, _ text: String) {
    (self.phase, self.group, self.title, self.text) = (phase, group, title, text)
  }

  /// The text of a phase; one that nobody knows speaks for itself.
  public static func of(_ phase: String, _ input: MeasurementInput) -> PhaseText {
    all(input).first { $0.phase == phase } ?? PhaseText(phase, .fetch, phase, phase)
  }

  /// Phases in the order in which they are shown, unknown ones last.
  static func ordered(_ phases: [String], _ input: MeasurementInput) -> [String] {
    let known = all(input).map(\.phase)
    return known.filter(phases.contains) + phases.filter { !known.contains($0) }
  }

  /// The phases of an input, in their order.
  public static func all(_ input: MeasurementInput) -> [PhaseText] {
    switch input {
    case .people: people
    case .packages: packages
    case .lists: lists
    }
  }

  private static let people: [PhaseText] = [
    PhaseText("W3", .load, "open, find one object", "Open the store and fetch one person by a unique value."),
    PhaseText("W2", .load, "open, load everything", "Open the store, fetch every person and read every attribute."),
    PhaseText("W2again", .load, "read everything again", "Fetch every person once more in the context that made them."),
    PhaseText("W1", .save, "make and save everything", "Make all persons and companies, relate them, and save them into a fresh store."),
    PhaseText("W1save", .save, "of that, the save", "The save of all new objects alone."),
    PhaseText("W1close", .save, "and close the store", "The same, and the store closed."),
    PhaseText("S1", .save, "20 saves of 1 changed object", "Change one person and save, twenty times."),
    PhaseText("S10", .save, "save 10 changed objects", "Change ten persons, and save."),
    PhaseText("S100", .save, "save 100 changed objects", "Change a hundred persons, and save."),
    PhaseText("S1000", .save, "save 1,000 changed objects", "Change a thousand persons, and save."),
    PhaseText("W6", .save, "find and change 1 in 100", "Fetch one person in a hundred without an index, change each, and save."),
    PhaseText(
      "W7", .save, "find and delete 1 in 100", "Fetch one person in a hundred without an index, delete them with their links, and save."),
    PhaseText("W4", .fetch, "filter, sort, first 100", "A range and a prefix, sorted by name, the first hundred persons."),
    PhaseText("W4i", .fetch, "the same with an index", "The same where the store has an index on the name."),
    PhaseText("W8", .fetch, "count, average by group", "Count the persons, and average their ages by company."),
    PhaseText("W5", .walk, "1,000 objects' relatives", "A thousand persons one by one, each with employer and friends."),
    PhaseText("W5b", .walk, "the same, fetched together", "The same with one request for all thousand persons."),
  ]

  private static let packages: [PhaseText] = [
    PhaseText("load", .load, "open, load everything", "Open the store, fetch every package and read every attribute."),
    PhaseText("import", .save, "import in batches", "Import all packages, maintainers, sections and links in batches into a fresh store."),
    PhaseText("update", .save, "change a section", "Change every package of one section, and save."),
    PhaseText("delete", .save, "delete a section", "Delete every package of one section with its links, and save."),
    PhaseText(
      "search", .fetch, "filter, sort, first 200",
      "A prefix, a range of sizes and a part of a text, sorted, the first two hundred packages."),
    PhaseText("links", .walk, "follow every link", "Fetch every package and follow every link of every kind."),
    PhaseText("traverse", .walk, "dependencies, all the way", "From some packages, follow what they depend on as far as it goes."),
  ]

  private static let lists: [PhaseText] = [
    PhaseText("make", .order, "make and save a list", "Make one list of so many objects, each with three links, and save it."),
    PhaseText("moves", .order, "10,000 random moves", "Move ten thousand objects of the list to places by chance."),
    PhaseText("moves-save", .order, "the save of them", "Save the new order."),
    PhaseText("move-save", .order, "one move and its save", "Move one object, and save."),
    PhaseText("cascade", .order, "delete the list", "Delete the list with everything in it by a cascade, and save."),
  ]
}
