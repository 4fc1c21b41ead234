import Foundation
import Holdfast
import Testing

/// Foldings are for text. They have no effect on other values, although their bytes can be those of letters.
@Suite struct FoldingOfBytesTests {
  private static let foldings: [TextFolding] = [.caseInsensitive, .diacriticInsensitive, [.caseInsensitive, .diacriticInsensitive]]

  /// Three values of an attribute in their order. Their bytes are "A", "B" and "a" at the first difference.
  private static func values(_ name: String) throws -> [StoreValue] {
    try [UInt8(ascii: "A"), UInt8(ascii: "B"), UInt8(ascii: "a")].map { letter in
      switch name {
      case "u": return .uuid(UUID(uuid: (letter, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
      case "x": return .data(Data([letter]))
      default:
        let entity = String(UnicodeScalar(letter)), store = "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"
        return .objectID(try #require(ManagedObjectID(uriRepresentation: "x-coredata://\(store)/\(entity)/p1")))
      }
    }
  }

  /// Contexts with a row for each value, in another order. The row has the index of its value as a number. One has saved the rows.
  private func contexts(_ store: TestStore) throws -> [ManagedObjectContext] {
    let place = try store.makePlace(model: Ledger.model, classes: [])
    let context = try place.context(), saved = try place.context()
    for index in [2, 1, 0] {
      let entry = try saved.insert(entityNamed: "Entry")
      try entry.setValue(.int32(Int32(index)), forKey: "i32")
      for name in ["u", "x", "o"] { try entry.setValue(try FoldingOfBytesTests.values(name)[index], forKey: name) }
      try saved.save()
    }
    let changed = try place.context()
    for entry in try changed.fetch(FetchRequest<ManagedObject>(entityName: "Entry")) { try entry.setValue(.bool(true), forKey: "b") }
    return [context, saved, changed]
  }

  @Test(arguments: TestStore.allCases)
  func `a folding changes neither the order nor the equality of UUIDs, data and IDs`(_ store: TestStore) throws {
    for context in try contexts(store) {
      for name in ["u", "x", "o"] {
        let values = try FoldingOfBytesTests.values(name), path = PropertyPath(name)
        for folding in FoldingOfBytesTests.foldings {
          let comment = Comment(rawValue: "\(name) with \(folding) on \(store)")
          func found(_ expression: QueryExpression?, isAscending: Bool = true) throws -> [StoreValue] {
            let term = FetchSortDescriptor<ManagedObject>(SortTerm(path, isAscending: isAscending, folding: folding))
            let request = FetchRequest<ManagedObject>(
              entityName: "Entry", where: expression.map { FetchPredicate($0) }, sortedBy: [term], limit: 9)
            return try context.fetch(request).compactMap { try $0.value(forKey: "i32").storeValue }
          }
          func compared(_ op: ComparisonOperator) -> QueryExpression {
            .comparison(.property(path), op, .constant(values[0]), folding)
          }
          #expect(try found(nil) == [.int32(0), .int32(1), .int32(2)], comment)
          #expect(try found(nil, isAscending: false) == [.int32(2), .int32(1), .int32(0)], comment)
          #expect(try found(compared(.equalTo)) == [.int32(0)], comment)
          #expect(try found(compared(.notEqualTo)) == [.int32(1), .int32(2)], comment)
          if name != "o" { #expect(try found(compared(.greaterThan)) == [.int32(1), .int32(2)], comment) }
        }
      }
    }
  }
}
