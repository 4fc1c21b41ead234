import Holdfast
import HoldfastStore
import Testing

/// Ranges of values, on every store.
@Suite struct RangeTests {
  @Test(arguments: TestStore.withChild) func `a range matches like two comparisons, whatever its bounds are`(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context()
    for age in 0..<6 {
      let dog = setup.dog("dog \(age)", age: age)
      dog.weight = age == 0 ? nil : Double(age) / 2
      dog.chip = age == 3 ? nil : Int64(age)
    }
    try setup.save()
    let context = try place.context()
    func names(_ expression: QueryExpression) -> [String] {
      do {
        let request = FetchRequest<Dog>(where: FetchPredicate(expression), sortedBy: [.ascending(\.name)])
        return try context.fetch(request).map(\.name)
      } catch { return ["an error"] }
    }
    let bounds: [StoreValue] = [.int16(2), .int64(4), .double(1.5), .double(2.5), .double(1e300), .double(-1e300), .null]
    let paths: [PropertyPath] = ["age", "weight", "chip"]
    for path in paths {
      for lower in bounds {
        for upper in bounds {
          let range = QueryExpression.between(.property(path), lower, upper)
          let above = QueryExpression.comparison(.property(path), .greaterThanOrEqualTo, .constant(lower), [])
          let below = QueryExpression.comparison(.property(path), .lessThanOrEqualTo, .constant(upper), [])
          #expect(names(range) == names(.and([above, below])), "\(path) from \(lower) to \(upper)")
          #expect(names(.not(range)) == names(.not(.and([above, below]))), "not \(path) from \(lower) to \(upper)")
        }
      }
    }
    #expect(names(.between(.property("age"), .int16(2), .int64(4))) == ["dog 2", "dog 3", "dog 4"])
    #expect(names(.between(.property("chip"), .double(1.5), .int64(4))) == ["dog 2", "dog 4"])
    #expect(names(.between(.property("weight"), .double(-1e300), .double(1.5))) == ["dog 1", "dog 2", "dog 3"])
    #expect(try context.fetch(Dog.self, sortedBy: \.name) { $0.name.isIn("dog 1"..."dog 3") }.map(\.name) == ["dog 1", "dog 2", "dog 3"])
  }
}
