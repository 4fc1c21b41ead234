import Foundation
import HoldfastStore
import Testing

@Suite struct StoreValueTests {
  /// Attributes contain the URI of an ID as text, by whose bytes rows are sorted.
  @Test func objectIDsAreOrderedByTheirURIs() throws {
    let model = try ManagedObjectModel(entities: ["Cat", "Dog"].map { EntityDescription($0, attributes: []) })
    let identity = StoreIdentity.intern(storeUUID: "B5A3E0C1-0000-0000-0000-000000000001", model: model)
    let ids = [(0, 1), (0, 10), (0, 2), (1, 1), (1, 9)].map { identity.objectID(entity: model.entities[$0.0], key: ObjectKey($0.1)) }
    for (place, id) in ids.enumerated() {
      for (otherPlace, other) in ids.enumerated() {
        #expect(ValueComparison.holds(.objectID(id), .lessThan, .objectID(other)) == (place < otherPlace))
        #expect(ValueComparison.holds(.objectID(id), .greaterThan, .objectID(other)) == (place > otherPlace))
        #expect(ValueComparison.holds(.objectID(id), .equalTo, .objectID(other)) == (place == otherPlace))
      }
    }
  }

  private static let composed = "caf\u{E9}", decomposed = "cafe\u{301}"

  @Test func textIsEqualIfItsBytesAre() {
    #expect(Self.composed == Self.decomposed, "Swift's strings are equal.")
    for make in [StoreValue.string, StoreValue.uri] {
      #expect(make(Self.composed) != make(Self.decomposed))
      #expect(make(Self.composed) == make("caf" + "\u{E9}"))
      #expect(Set([make(Self.composed), make(Self.decomposed), make(Self.composed)]).count == 2)
    }
    #expect(StoreValue.string("a") != .uri("a"))
  }

  @Test func queriesAndPlansOfDifferentBytesDiffer() {
    func query(_ text: String) -> QueryExpression { .comparison(.property("name"), .equalTo, .constant(.string(text)), []) }
    #expect(query(Self.composed) != query(Self.decomposed) && query(Self.composed) == query(Self.composed))
    func list(_ text: String) -> QueryExpression { .membership(.property("name"), [.string(text)]) }
    #expect(list(Self.composed) != list(Self.decomposed))
    #expect(Set([query(Self.composed), query(Self.decomposed), query(Self.composed)]).count == 2)
    func request(_ text: String) -> FetchPlan { FetchPlan(entity: 0, concreteEntities: [0], predicate: query(text)) }
    #expect(request(Self.composed) != request(Self.decomposed))
  }

  private static let decimals = ["0", "-1.5", "12345678901234567890123456789012345678", "0.00000000000000000000000000000000000001", "NaN"]

  @Test(arguments: decimals) func decimalsAreDecodedAsTheyWereEncoded(_ text: String) throws {
    let number = text == "NaN" ? Decimal.nan : try #require(Decimal(string: text))
    let decoded = try JSONDecoder().decode(StoreValue.self, from: JSONEncoder().encode(StoreValue.decimal(number)))
    guard case .decimal(let decoded) = decoded else { return #expect(Bool(false), "\(decoded)") }
    #expect(decoded == number || decoded.isNaN && number.isNaN)
    #expect(decoded.description == number.description)
  }

  @Test func decimalsThatAreNumbersAreDecodedAndOtherTextIsRefused() throws {
    func decode(_ content: String) throws -> StoreValue {
      try JSONDecoder().decode(StoreValue.self, from: Data("{\"decimal\":{\"_0\":\(content)}}".utf8))
    }
    #expect(try decode("1.25") == .decimal(Decimal(string: "1.25")!) && decode("\"1.25\"") == .decimal(Decimal(string: "1.25")!))
    for content in ["\"\"", "\"1.25x\"", "\"one\"", "true", "null"] {
      #expect(throws: DecodingError.self, "\(content)") { try decode(content) }
    }
  }

  /// One value of each case, and another of the same case.
  private static let pairs: [(StoreValue, StoreValue?)] = [
    (.null, nil), (.bool(true), .bool(false)), (.int16(1), .int16(2)), (.int32(1), .int32(2)), (.int64(1), .int64(2)),
    (.float(1), .float(2)), (.double(1), .double(2)), (.decimal(1), .decimal(2)), (.string("1"), .string("2")), (.date(1), .date(2)),
    (
      .uuid(UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))),
      .uuid(UUID(uuid: (2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
    ),
    (.uri("1"), .uri("2")), (.data(Data([1])), .data(Data([2]))),
    (
      .externalData(UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))),
      .externalData(UUID(uuid: (2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
    ),
  ]

  @Test func valuesOfOtherCasesOrContentsDiffer() {
    for (place, pair) in Self.pairs.enumerated() {
      #expect(pair.0 == pair.0)
      if let other = pair.1 { #expect(pair.0 != other) }
      for (otherPlace, other) in Self.pairs.enumerated() where place != otherPlace { #expect(pair.0 != other.0) }
    }
    #expect(StoreValue.double(.nan) != .double(.nan) && StoreValue.double(0) == .double(-0.0))
  }
}
