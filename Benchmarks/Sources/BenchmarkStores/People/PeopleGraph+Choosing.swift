internal import BenchmarkData
internal import Holdfast

extension PeopleGraph {
  /// The persons whose id has a remainder when divided by 100: one percent, which no index can find.
  func persons(withRemainder remainder: Int64) throws -> [StoredPerson] {
    try context.fetch(StoredPerson.self) { $0.id % 100 == remainder }
  }
}
