import Foundation
import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// Missing values have no bytes, whatever rows were read before. Setters overwrite the bytes that a cell refers to.
@Suite struct NullCellTests {
  private final class Collector: RowSink {
    var rows: [RowView] = []
    func take(_ batch: RowBatch, _ selection: RowSelection) -> SinkDemand {
      switch selection {
      case .all: rows += (0..<batch.count).map { batch[$0] }
      case .one(let index): rows.append(batch[index])
      case .rows(let indexes): rows += indexes.map { batch[Int($0)] }
      }
      return .more
    }
  }

  @Test(arguments: TestStore.allCases) func `nil after a long text has an empty cell`(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    for number in 0..<6 {
      let dog = context.dog("d\(number)", age: number)
      if number % 2 == 0 {
        (dog.notes, dog.price, dog.weight, dog.chip) = (String(repeating: "long", count: 500), 12.5, 1.5, Int64(number))
      }
    }
    try context.save()
    try place.close()
    let bare = place.description.makeStore()
    _ = try bare.open(model: place.model)
    let (view, sink) = (try bare.beginRead(.latest), Collector())
    let index = try #require(place.model.entity(named: "Dog")).index
    try bare.fetch(FetchPlan(entity: index, concreteEntities: [index]), in: view, into: sink)
    #expect(sink.rows.count == 6)
    for row in sink.rows {
      for slot in row.batch.layout.slots where !row.pointer.isPresent(slot) {
        #expect(row.pointer.integer(slot) == 0, "slot \(slot) of row \(row.key)")
      }
    }
    view.end()
    try bare.close()
    let again = try place.context()
    for dog in try again.fetch(FetchRequest<Dog>()) where dog.notes == nil { dog.notes = String(repeating: "n", count: 1000) }
    try again.save()
    #expect(try place.context().fetch(FetchRequest<Dog>()).allSatisfy { ($0.notes?.count ?? 0) >= 1000 })
  }
}
