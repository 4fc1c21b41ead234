import HoldfastStore
import Testing

@testable import Holdfast

@Suite struct RowGroupTests {
  /// A group of two runs, which contain the rows with these keys.
  private func group(_ keys: [ObjectKey]) throws -> RowGroup {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Note", attributes: [AttributeDescription("text", .string, isOptional: true)])
    ])
    let identity = StoreIdentity.intern(storeUUID: "ROW-GROUP-TESTS", model: model)
    func run(_ keys: ArraySlice<ObjectKey>) throws -> RowRun {
      let builder = RowBatchBuilder(entity: model.entities[0], identity: identity)
      for key in keys { try builder.append(key: key, version: 1, values: [.string("note")]) }
      return RowRun(batch: builder.seal(), rows: .all)
    }
    let middle = keys.count / 2
    return RowGroup(try run(keys[..<middle]), [try run(keys[middle...])], entity: 0)
  }

  @Test(arguments: [2, 4, 5, 500]) func eachRowIsFoundByItsKeyAlsoIfTwoStoresHaveTheSameKeys(count: Int) throws {
    let keys = (1...Int64(count)).flatMap { [ObjectKey(3 * $0), ObjectKey(3 * $0 | 1 << 56)] }
    let group = try group(keys)
    for (position, key) in keys.enumerated() {
      guard let found = group.row(key) else {
        Issue.record("Key \(key) isn't found.")
        continue
      }
      #expect(found.0.key == key && found.1 == position)
    }
    let isOtherFound = group.row(1) != nil || group.row(ObjectKey(1 | 1 << 56)) != nil
    #expect(!isOtherFound)
  }

  @Test func aRowByItselfIsThatOfItsPosition() throws {
    let keys = (Int64(1)...7).map { ObjectKey($0) }, group = try group(keys)
    for (position, key) in keys.enumerated() { #expect(group.alone(at: position).keys == [key]) }
  }

  @Test(arguments: [8, 9, 1_000]) func ofSeveralRowsWithTheSameKeyTheFirstIsFound(count: Int) throws {
    let group = try group((1..<Int64(count)).map { ObjectKey($0) } + [2])
    #expect(group.count == count)
    #expect(group.row(2)?.1 == 1)
  }
}
