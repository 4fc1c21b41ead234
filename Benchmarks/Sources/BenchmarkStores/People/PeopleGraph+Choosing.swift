internal import BenchmarkData
internal import Holdfast

extension PeopleGraph {
  /// How one person in a hundred is found. The query language has no remainder.
  enum Choice: Sendable {
    /// Reads all persons and looks at their ids, which is what the scan of the floors comes to.
    case reading
    /// Names the ids, which anybody can work out who knows how they were given.
    case naming
  }

  /// The persons whose id leaves a remainder when divided by 100.
  func persons(withRemainder remainder: Int64, _ choice: Choice) throws -> [StoredPerson] {
    switch choice {
    case .reading: return try all().filter { $0.id % 100 == remainder }
    case .naming:
      let ids = (0..<count).lazy.map(PeopleDataset.id).filter { $0 % 100 == remainder }
      return try context.fetch(FetchRequest(where: (\StoredPerson.id).isIn(ids)))
    }
  }
}
