internal import BenchmarkData
internal import Holdfast

extension PeopleGraph {
  /// The persons whose id leaves a remainder when divided by 100: one in a hundred, which no index finds.
  func persons(withRemainder remainder: Int64) throws -> [StoredPerson] {
    try context.fetch(FetchRequest(where: \StoredPerson.id % 100 == remainder))
  }
}
